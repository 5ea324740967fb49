"""Triage: the words that each vector gives away, by the readout alone. No order, no passes, no text.

Made for whole stores: one matrix product for a block of vectors, over the words that are worth naming. A word ranks by
how far its probability p lies above its base rate b, in units of the base rate's spread: p / sqrt(b) decides, so that
"invoice" comes before "the". Both kinds of readout give that as an affine map of a few hundred features.
"""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor

from unembed.audit.lists import load_list
from unembed.errors import ConfigError
from unembed.inverter import Inverter, check_vectors
from unembed.model.readout import scale_to_sphere

VOCABULARY = 8192
"""Words that are looked for by default: the most frequent ones but for those that say nothing."""
_BLOCK = 512
_WORD = re.compile(r"[^\W\d_]{3,}")


@dataclass(frozen=True)
class Words:
    """The words of some vectors, best first."""

    places: np.ndarray
    """(n, top) places in :attr:`WordReader.words`."""
    names: Sequence[str]

    def __len__(self) -> int:
        return len(self.places)

    def names_of(self, row: int) -> list[str]:
        """Return the words of one vector."""
        return [self.names[place] for place in self.places[row].tolist()]

    def holding(self, wanted: Iterable[int]) -> np.ndarray:
        """Return which vectors have one of the words at some places of the vocabulary."""
        return np.asarray(np.isin(self.places, list(wanted)).any(axis=1))

    def counts(self) -> np.ndarray:
        """Return for every word of the vocabulary how many of the vectors have it."""
        return np.bincount(self.places.ravel(), minlength=len(self.names))


class WordReader:
    """Names the words that stand out in vectors."""

    def __init__(
        self, inverter: Inverter, *, top: int = 12, vocabulary: int = VOCABULARY, find: Sequence[str] = ()
    ) -> None:
        """Choose the words.

        Args:
            inverter: one that has a readout.
            top: words per vector.
            vocabulary: how many words are looked for; the time is in proportion to it.
            find: words that are looked for however rare they are.
        """
        readout = inverter.model.readout
        if readout.config.kind == "none":
            raise ConfigError("This inverter has no readout.", "Train one with model.readout.kind: linear or mlp.")
        self._inverter = inverter
        base = readout.base.detach()
        wanted = {word: _find(word, inverter) for word in find}
        named = [token for token in base.argsort(descending=True, stable=True).tolist() if self._says_much(token)]
        tokens = torch.tensor(sorted({*named[:vocabulary], *wanted.values()}), device=base.device)
        self.words = [inverter.tokenizer.id_to_token(token) or "" for token in tokens.tolist()]
        """All words that can be named."""
        place = {token: number for number, token in enumerate(tokens.tolist())}
        self.places = {word: place[token] for word, token in wanted.items()}
        """Where in :attr:`words` those are that were to be found."""
        self._top = min(top, len(self.words))
        layer = readout.linear if readout.config.kind == "linear" else readout.out
        weight, bias = layer.weight.detach()[tokens].float(), layer.bias.detach()[tokens].float()
        if readout.config.kind == "linear":
            spread = (base[tokens] / 2).exp()  # probabilities come out: divided here, subtracted from logits below
            weight, bias = weight / spread[:, None], bias / spread
        else:
            bias = bias - base[tokens] / 2
        self._weight: Tensor = weight.T.contiguous()
        self._bias: Tensor = bias

    @torch.no_grad()
    def read(self, vectors: np.ndarray) -> Words:
        """Name the words of vectors (n, d), best first."""
        checked = torch.from_numpy(check_vectors(vectors, self._inverter.info)).to(self._inverter.device)
        readout = self._inverter.model.readout
        found = []
        for block in torch.split(checked, _BLOCK):
            features = scale_to_sphere(block)
            if readout.config.kind == "mlp":
                features = F.gelu(readout.hidden(features))
            found.append(torch.addmm(self._bias, features, self._weight).topk(self._top).indices)
        places = torch.cat(found) if found else torch.empty(0, self._top, dtype=torch.long)
        return Words(places.cpu().numpy(), self.words)

    def _says_much(self, token: int) -> bool:
        word = self._inverter.tokenizer.id_to_token(token) or ""
        return _WORD.fullmatch(word) is not None and word not in load_list("function-words")


def _find(word: str, inverter: Inverter) -> int:
    """Return the token that is a word by itself."""
    encoding = inverter.tokenizer.encode(word, add_special_tokens=False)
    if len(encoding.ids) != 1 or encoding.ids[0] in inverter.info.special_ids:
        pieces = ", ".join(encoding.tokens) or "nothing"
        raise ConfigError(
            f"'{word}' is no single word of this encoder's vocabulary: it reads {pieces}.",
            "Look for a simpler form of it, or for words that stand beside it.",
        )
    return int(encoding.ids[0])
