"""Any sentence-transformers model, run through its own modules. Knows nothing of canvases or stores.

The vectors are those of ``SentenceTransformer.encode`` up to rounding; only the batching differs. Texts of one length
share a batch, so nothing is padded, and on a CPU each core works on a batch of its own. ``benchmarks/results.md`` says
what that gains. Only the quicker copy, for searches that embed a few texts at a time, pads.

In bfloat16 the weights, and what is computed with them, have 8 bits of precision instead of 24. Pooling, normalisation
and the vectors stay float32.
"""

import copy
import os
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any, Literal, Self

import numpy as np
import torch
from huggingface_hub.utils.tqdm import are_progress_bars_disabled, disable_progress_bars, enable_progress_bars
from sentence_transformers import SentenceTransformer
from tokenizers import Tokenizer
from transformers.utils import logging as transformers_logging

from unembed.encoders.base import EncoderDescription, Precision, as_texts
from unembed.encoders.precision import PROBES, SAME, has_native_bfloat16, least_cosine
from unembed.encoders.substitution import batches_of_one_length, batches_of_similar_length, best_substitutions
from unembed.errors import ConfigError, EncoderError, UnembedError, first_line
from unembed.progress import track
from unembed.text import well_formed

_PROBE = "A short sentence, to compare 2 ways of reading it."
_PROBES = (_PROBE, "  Spaces around,\ta tab and\na line break.  ", "Änderung, naïve façade, 東京 🙂")
_GRADIENT_BATCH = 16
_ROUNDING = 1e-2  # of a norm; bfloat16 has two digits
# The names under which SentenceTransformer.encode_document looks for a prompt, in this order.
_DOCUMENT_PROMPTS = ("document", "passage", "corpus")
_LONGEST = 100_000  # a longer limit means that the model has none


class SentenceTransformerEncoder:
    """An :class:`~unembed.encoders.Encoder` around a sentence-transformers model.

    Texts are embedded as documents: with the prompt that the model has for them, as ``encode_document`` does.
    """

    def __init__(
        self,
        path: str,
        *,
        name: str,
        revision: str | None,
        prompt: str | None = None,
        task: str | None = None,
        truncate_dim: int | None = None,
        device: str = "auto",
        local_files_only: bool = False,
        precision: Precision | Literal["auto"] = "float32",
        build: Callable[..., SentenceTransformer] = SentenceTransformer,
    ) -> None:
        _check_device(device)
        folder = os.path.isdir(path)  # noqa: PTH112 - a hub id is not a path
        try:
            with _without_weight_bars():
                self.model = build(
                    path,
                    device=None if device == "auto" else device,
                    truncate_dim=truncate_dim,
                    revision=None if folder else revision,
                    local_files_only=local_files_only,
                    trust_remote_code=False,
                )
            self.model.eval()
            vector = np.asarray(self.model.encode([_PROBE], show_progress_bar=False))[0]
        except UnembedError:
            raise
        # The hub client, its HTTP library, safetensors and every model class raise errors of their own.
        except Exception as error:
            raise EncoderError(
                f"Cannot load the encoder '{name}': {first_line(error)}",
                "Check the name and the connection, or give a folder that holds a sentence-transformers model.",
            ) from error
        self._tokenizer = _tokenizer_of(self.model, name)
        self._prompt = _prompt_of(self.model, prompt)
        self._description = EncoderDescription(
            name=name,
            revision=revision or _revision_of(self.model),
            dim=_checked_dimension(vector, truncate_dim, name),
            prompt=self._prompt,
            pooling=_pooling_of(self.model),
            # Measured: vectors that are cut short are no longer of length one.
            normalised=bool(abs(np.linalg.norm(vector) - 1.0) < _ROUNDING),
            task=task,
            truncate_dim=truncate_dim,
        )
        self._own_batches = self._reads_like_the_model()
        self._padding: int | None = None
        self._quick: Self | None = None
        self._set_precision(precision)

    @property
    def description(self) -> EncoderDescription:
        """Name, revision, dimension, prompt, pooling and normalisation."""
        return self._description

    @property
    def tokenizer(self) -> Tokenizer:
        """A copy of the encoder's tokenizer, without padding or truncation."""
        copy = Tokenizer.from_str(self._tokenizer.to_str())
        copy.no_truncation()
        return copy

    def encode(self, sentences: Sequence[str], *, batch_size: int = 32, show_progress_bar: bool = False) -> np.ndarray:
        """Return one float32 row per sentence."""
        texts = as_texts(sentences)
        if not self._own_batches:
            return np.asarray(
                self.model.encode_document(
                    texts, batch_size=batch_size, prompt=self._prompt, show_progress_bar=show_progress_bar
                ),
                dtype=np.float32,
            ).reshape(len(texts), self.description.dim)
        ids = self._ids(texts)
        vectors = np.empty((len(ids), self.description.dim), dtype=np.float32)

        def encode_batch(rows: np.ndarray) -> int:
            vectors[rows] = self._forward([ids[row] for row in rows])
            return len(rows)

        group = batches_of_one_length if self._padding is None else batches_of_similar_length
        batches = group([len(row) for row in ids], batch_size)
        done = self._run(encode_batch, batches)
        for _ in track(done, total=len(ids), label="Embedding", disable=not show_progress_bar):
            pass
        return vectors

    @property
    def supports_substitutions(self) -> bool:
        """Whether the gradient can be taken: where our reading of a text is the model's own."""
        return self._own_batches

    def substitutions(
        self, sentences: Sequence[str], targets: np.ndarray, top: int, *, forbidden: Sequence[int] = ()
    ) -> list[tuple[np.ndarray, np.ndarray] | None]:
        """Estimate what each substitution of one token would add to the cosine with a target (n, d).

        One backward pass gives the gradient with respect to the input embeddings; its product with the difference of
        two token embeddings is the first-order gain of exchanging them, for every token at every position at once.
        """
        best_of: list[tuple[np.ndarray, np.ndarray] | None] = [None] * len(sentences)
        if not self.supports_substitutions:
            return best_of
        ids = self._ids([well_formed(text) for text in sentences])
        own = self._tokenizer.encode_batch(list(sentences), add_special_tokens=False)
        starts = [_find(encoding.ids, row) for encoding, row in zip(own, ids, strict=True)]
        layer = self.model[0].auto_model.get_input_embeddings()
        for rows in batches_of_one_length([len(row) for row in ids], _GRADIENT_BATCH):
            gradient = self._gradient([ids[row] for row in rows], targets[rows])
            for index, row in enumerate(rows):
                start = starts[row]
                if start is None:
                    continue
                current = torch.tensor(own[row].ids, device=gradient.device)
                part = gradient[index, start : start + len(current)]
                best_of[row] = best_substitutions(part, current, layer.weight, top, forbidden)
        return best_of

    @torch.enable_grad()
    def _gradient(self, rows: list[list[int]], targets: np.ndarray) -> torch.Tensor:
        """Return the gradient of the cosine with respect to the input embeddings: (B, T, W)."""
        captured: list[torch.Tensor] = []

        def capture(_module: torch.nn.Module, _inputs: Any, output: torch.Tensor) -> torch.Tensor:
            captured.append(output.detach().requires_grad_())
            return captured[0]

        handle = self.model[0].auto_model.get_input_embeddings().register_forward_hook(capture)
        try:
            vectors = self._vectors(rows)
        finally:
            handle.remove()
        wanted = torch.from_numpy(np.asarray(targets, dtype=np.float32)).to(vectors.device)
        cosine = torch.nn.functional.cosine_similarity(vectors, wanted)
        (gradient,) = torch.autograd.grad(cosine.sum(), captured)
        return gradient

    def quicker(self) -> Self:
        """Return a copy in bfloat16 if that is faster and gives practically the same vectors; else this encoder.

        The copy also pads texts, so that a few of different lengths share a batch. It is made once.
        """
        if self._quick is None:
            self._quick = self._make_quicker()
        return self._quick

    def _make_quicker(self) -> Self:
        if self.description.precision != "float32" or not has_native_bfloat16(self.model.device):
            return self
        other = copy.copy(self)
        other.model = copy.deepcopy(self.model)
        other._padding = getattr(self.model.tokenizer, "pad_token_id", None)
        other._set_precision("auto")
        return other if other.description.precision == "bfloat16" else self

    def _set_precision(self, precision: Precision | Literal["auto"]) -> None:
        if precision == "float32" or (precision == "auto" and not has_native_bfloat16(self.model.device)):
            return
        transformer = self.model[0]
        parameters = [parameter for parameter in transformer.parameters() if parameter.is_floating_point()]
        exact, expected = [parameter.data for parameter in parameters], self.encode(PROBES)
        # Parameters only: rotary embeddings keep their frequencies in buffers, which need all their bits.
        for parameter in parameters:
            parameter.data = parameter.data.bfloat16()
        handle = transformer.register_forward_hook(_widen)
        if precision == "auto" and least_cosine(expected, self.encode(PROBES)) <= SAME:
            handle.remove()
            for parameter, data in zip(parameters, exact, strict=True):
                parameter.data = data
            return
        self._description = self._description.model_copy(update={"precision": "bfloat16"})

    def _run(self, encode_batch: Callable[[np.ndarray], int], batches: list[np.ndarray]) -> Iterator[int]:
        cores = torch.get_num_threads()
        if self.model.device.type != "cpu" or cores == 1 or len(batches) < cores:
            yield from map(encode_batch, batches)
            return
        # One single-threaded batch per core wastes less on synchronisation than all cores sharing each batch.
        try:
            with ThreadPoolExecutor(cores, initializer=torch.set_num_threads, initargs=(1,)) as pool:
                yield from pool.map(encode_batch, batches)
        finally:
            torch.set_num_threads(cores)  # the pool's setting is also what every later thread would start with

    def _ids(self, sentences: Sequence[str]) -> list[list[int]]:
        prompted = [self._prompt + text for text in sentences] if self._prompt else list(sentences)
        return [encoding.ids for encoding in self._tokenizer.encode_batch(prompted)]

    @torch.inference_mode()
    def _forward(self, rows: list[list[int]]) -> np.ndarray:
        vectors: np.ndarray = self._vectors(rows).cpu().numpy()
        return vectors

    def _vectors(self, rows: list[list[int]]) -> torch.Tensor:
        vectors: torch.Tensor = self.model(self._features_of(rows))["sentence_embedding"].float()
        return vectors[:, : self.description.dim]

    def _features_of(self, rows: list[list[int]]) -> dict[str, torch.Tensor]:
        longest = max(map(len, rows))
        padded = [[*row, *[self._padding or 0] * (longest - len(row))] for row in rows]
        seen = [[1] * len(row) + [0] * (longest - len(row)) for row in rows]
        ids = torch.tensor(padded, device=self.model.device)
        features = {"input_ids": ids, "attention_mask": torch.tensor(seen, device=self.model.device)}
        if "token_type_ids" in self._features:
            features["token_type_ids"] = torch.zeros_like(ids)
        return features

    def _reads_like_the_model(self) -> bool:
        """Whether our reading of a text gives the very ids that the model's own preprocessing gives.

        It does for plain transformers. Where it does not (other inputs, prompts left out of the pooling, other modules
        for documents than for queries), the model's own ``encode_document`` is used: slower, never wrong.
        """
        prompt_is_pooled = all(getattr(module, "include_prompt", True) for module in self.model)
        routed = any(type(module).__name__ == "Router" for module in self.model)
        if routed or (self._prompt and not prompt_is_pooled):
            return False
        probes = list(_PROBES)
        limit = self.model.max_seq_length
        if limit is not None and limit < _LONGEST:
            side = getattr(self.model.tokenizer, "truncation_side", "right")
            self._tokenizer.enable_truncation(int(limit), direction=side)
            probes.append(f"{_PROBE} " * (int(limit) // 8 + 1))
        for probe, ids in zip(probes, self._ids(probes), strict=True):
            try:
                features: dict[str, Any] = self.model.preprocess([probe], prompt=self._prompt)
            except (TypeError, ValueError, AttributeError):
                return False
            self._features = {key for key, value in features.items() if isinstance(value, torch.Tensor)}
            if not {"input_ids"} <= self._features <= {"input_ids", "attention_mask", "token_type_ids"}:
                return False
            if features["input_ids"][0].tolist() != ids:
                return False
        return True


def _find(part: list[int], whole: list[int]) -> int | None:
    """Return where a sentence's own tokens begin among those of its prompt and the special ones."""
    starts = range(len(whole) - len(part), -1, -1)
    return next((start for start in starts if part and whole[start : start + len(part)] == part), None)


def _widen(_module: torch.nn.Module, _inputs: Any, features: dict[str, Any]) -> dict[str, Any]:
    """Return what a transformer computed in bfloat16 as float32."""
    return {
        name: value.float() if isinstance(value, torch.Tensor) and value.is_floating_point() else value
        for name, value in features.items()
    }


def _check_device(device: str) -> None:
    try:
        torch.empty(0, device=None if device == "auto" else device)
    except (RuntimeError, AssertionError) as error:
        raise ConfigError(f"The device '{device}' cannot be used: {first_line(error)}", "Try `device=cpu`.") from error


@contextmanager
def _without_weight_bars() -> Iterator[None]:
    """Keep transformers from drawing a bar while it copies weights; the bars of downloads stay."""
    shown, downloads_shown = transformers_logging.is_progress_bar_enabled(), not are_progress_bars_disabled()
    transformers_logging.disable_progress_bar()  # this one call also silences downloads
    if downloads_shown:
        enable_progress_bars()
    try:
        yield
    finally:
        if shown:
            transformers_logging.enable_progress_bar()
        if not downloads_shown:
            disable_progress_bars()


def _prompt_of(model: SentenceTransformer, given: str | None) -> str | None:
    """Return what is put before a text: the prompt given, the model's one for documents, or its default one."""
    names = [*_DOCUMENT_PROMPTS, model.default_prompt_name]
    # The library adds an empty prompt for documents to models that have none.
    default = next((model.prompts[name] for name in names if model.prompts.get(name)), None)
    if given is None:
        return default or None
    return given if given or default else None


def _checked_dimension(vector: np.ndarray, wanted: int | None, name: str) -> int:
    if wanted is not None and wanted > len(vector):
        raise ConfigError(f"'{name}' gives {len(vector)} numbers, not {wanted}.", "Give a smaller `truncate_dim`.")
    return len(vector)


def _tokenizer_of(model: SentenceTransformer, name: str) -> Tokenizer:
    backend = getattr(model, "tokenizer", None)
    backend = getattr(backend, "backend_tokenizer", backend)
    if not isinstance(backend, Tokenizer):
        raise EncoderError(
            f"The encoder '{name}' has no tokenizer of the tokenizers library, so its texts cannot be stored as ids.",
            "Use an encoder that ships a tokenizer.json.",
        )
    tokenizer = Tokenizer.from_str(backend.to_str())
    tokenizer.no_padding()
    tokenizer.no_truncation()
    return tokenizer


def _pooling_of(model: SentenceTransformer) -> str:
    for module in model:
        if type(module).__name__ == "Pooling":
            mode = module.get_config_dict().get("pooling_mode", "unknown")
            return "+".join(mode) if isinstance(mode, list | tuple) else str(mode)
    return "none"


def _revision_of(model: SentenceTransformer) -> str:
    commit = getattr(model.config, "_commit_hash", None)
    return str(commit or "unknown")
