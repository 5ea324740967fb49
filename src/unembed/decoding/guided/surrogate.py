"""The model's surrogate as an encoder, so that the search can ask it instead of the real one."""

from collections.abc import Sequence

import numpy as np
import torch
import torch.nn.functional as F
from tokenizers import Tokenizer
from torch import Tensor

from unembed.alignment import SpaceMap
from unembed.encoders import EncoderDescription
from unembed.encoders.base import as_texts
from unembed.encoders.substitution import batches_of_one_length, best_substitutions
from unembed.errors import ConfigError
from unembed.model import ConditionalMDLM
from unembed.model.precision import quickest, round_products

_GRADIENT_BATCH = 16


class SurrogateEncoder:
    """An :class:`~unembed.encoders.Encoder` that nearly gives another one's vectors."""

    supports_substitutions = True

    def __init__(
        self,
        model: ConditionalMDLM,
        tokenizer: Tokenizer,
        description: EncoderDescription,
        space_map: SpaceMap | None = None,
    ) -> None:
        """Use a model's surrogate.

        Args:
            model: one that has a surrogate.
            tokenizer: of its canvases.
            description: of the encoder that it stands in for.
            space_map: from the encoder that the model was trained for to the one that is described.
        """
        if model.surrogate is None:
            raise ConfigError(
                "This inverter has no surrogate of its encoder.",
                "Choose another strategy, such as guided; or train one: model.surrogate and training.surrogate.",
            )
        self._model, self._surrogate = model, round_products(model.surrogate)
        self.tokenizer = tokenizer
        self.description = description
        self._space_map = space_map

    @property
    def fidelity(self) -> float:
        """Mean cosine with the encoder's vectors, on texts that it was not trained on."""
        return float(self._surrogate.fidelity)

    @torch.no_grad()
    def encode(self, sentences: Sequence[str], *, batch_size: int = 64, show_progress_bar: bool = False) -> np.ndarray:
        """Return one float32 row per sentence; of longer texts than a canvas holds, the beginning is read."""
        return self.encode_ids(self._ids(as_texts(sentences)), batch_size=batch_size)

    @torch.no_grad()
    def encode_ids(self, texts: Sequence[Sequence[int]], *, batch_size: int = 64) -> np.ndarray:
        """Return one float32 row per text, given its ids; of more than a canvas holds, the first are read."""
        texts = [ids[: self._model.config.canvas_length] for ids in texts]
        vectors = np.empty((len(texts), self.description.dim), dtype=np.float32)
        for rows in batches_of_one_length([len(ids) for ids in texts], batch_size):
            vectors[rows] = self._vectors(self._embed([texts[row] for row in rows])).cpu().numpy()
        return vectors

    def substitutions(
        self, sentences: Sequence[str], targets: np.ndarray, top: int, *, forbidden: Sequence[int] = ()
    ) -> list[tuple[np.ndarray, np.ndarray] | None]:
        """Estimate what each substitution of one token would add to the cosine with a target (n, d)."""
        ids = self._ids(as_texts(sentences))
        best_of: list[tuple[np.ndarray, np.ndarray] | None] = [None] * len(ids)
        table = self._model.denoiser.token_embedding.weight
        for rows in batches_of_one_length([len(row) for row in ids], _GRADIENT_BATCH):
            tokens = self._embed([ids[row] for row in rows])
            with torch.enable_grad():
                tokens.requires_grad_()
                wanted = torch.from_numpy(np.asarray(targets[rows], dtype=np.float32)).to(tokens.device)
                cosine = F.cosine_similarity(self._vectors(tokens), wanted)
                (gradient,) = torch.autograd.grad(cosine.sum(), tokens)
            for row, part in zip(rows.tolist(), gradient, strict=True):
                current = torch.tensor(ids[row], device=part.device)
                best_of[row] = best_substitutions(part, current, table, top, forbidden)
        return best_of

    def _ids(self, texts: Sequence[str]) -> list[list[int]]:
        longest = self._model.config.canvas_length
        encodings = self.tokenizer.encode_batch(list(texts), add_special_tokens=False)
        return [encoding.ids[:longest] for encoding in encodings]

    def _embed(self, rows: Sequence[Sequence[int]]) -> Tensor:
        table = self._model.denoiser.token_embedding
        ids = torch.tensor(rows, dtype=torch.long, device=table.weight.device)
        embedded: Tensor = table(ids).detach()
        return embedded

    def _vectors(self, tokens: Tensor) -> Tensor:
        with quickest(tokens.device):
            vectors: Tensor = self._surrogate(tokens)
        return vectors if self._space_map is None else self._space_map(vectors)  # type: ignore[no-any-return]
