"""Any sentence-transformers model, run through its own modules. Knows nothing of canvases or stores.

The vectors are those of ``SentenceTransformer.encode`` up to rounding; only the batching differs. Texts of one length
share a batch, so nothing is padded, and on a CPU each core works on a batch of its own: together well over
1.3 times as fast (``benchmarks/embedding.py``).
"""

import os
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import torch
from sentence_transformers import SentenceTransformer
from tokenizers import Tokenizer

from unembed.encoders.base import EncoderDescription
from unembed.errors import EncoderError
from unembed.progress import track

_PROBE = "A short sentence, to compare 2 ways of reading it."


class SentenceTransformerEncoder:
    """An :class:`~unembed.encoders.Encoder` around a sentence-transformers model."""

    def __init__(
        self, path: str, *, name: str, revision: str | None, prompt: str | None = None, device: str = "auto"
    ) -> None:
        folder = os.path.isdir(path)  # noqa: PTH112 - a hub id is not a path
        try:
            self.model = SentenceTransformer(
                path,
                device=None if device == "auto" else device,
                revision=None if folder else revision,
                local_files_only=folder,
                trust_remote_code=False,
            )
        except (OSError, ValueError, RuntimeError, KeyError, ImportError) as error:
            raise EncoderError(
                f"Cannot load the encoder '{name}': {str(error).splitlines()[0]}",
                "Check the name and the connection, or give a folder that holds a sentence-transformers model.",
            ) from error
        self.model.eval()
        self._tokenizer = _tokenizer_of(self.model, name)
        self._prompt = prompt
        self._description = EncoderDescription(
            name=name,
            revision=revision or _revision_of(self.model),
            dim=_dimension_of(self.model),
            prompt=prompt,
            pooling=_pooling_of(self.model),
            normalised=any(type(module).__name__ == "Normalize" for module in self.model),
        )
        self._own_batches = self._reads_like_the_model()

    @property
    def description(self) -> EncoderDescription:
        """Name, revision, dimension, prompt, pooling and normalisation."""
        return self._description

    @property
    def tokenizer(self) -> Tokenizer:
        """A copy of the encoder's tokenizer, without padding or truncation."""
        return Tokenizer.from_str(self._tokenizer.to_str())

    def encode(self, sentences: Sequence[str], *, batch_size: int = 32, show_progress_bar: bool = False) -> np.ndarray:
        """Return one float32 row per sentence."""
        if not self._own_batches:
            return np.asarray(
                self.model.encode(
                    list(sentences), batch_size=batch_size, prompt=self._prompt, show_progress_bar=show_progress_bar
                ),
                dtype=np.float32,
            ).reshape(len(sentences), self.description.dim)
        ids = self._ids(sentences)
        vectors = np.empty((len(ids), self.description.dim), dtype=np.float32)

        def encode_batch(rows: np.ndarray) -> int:
            vectors[rows] = self._forward([ids[row] for row in rows])
            return len(rows)

        batches = batches_of_one_length([len(row) for row in ids], batch_size)
        cores = torch.get_num_threads()
        if self.model.device.type != "cpu" or len(batches) < cores:
            done = map(encode_batch, batches)
            for _ in track(done, total=len(ids), label="Embedding", disable=not show_progress_bar):
                pass
            return vectors
        # One single-threaded batch per core wastes less on synchronisation than all cores sharing each batch.
        with ThreadPoolExecutor(cores, initializer=torch.set_num_threads, initargs=(1,)) as pool:
            done = pool.map(encode_batch, batches)
            for _ in track(done, total=len(ids), label="Embedding", disable=not show_progress_bar):
                pass
        return vectors

    def _ids(self, sentences: Sequence[str]) -> list[list[int]]:
        prompted = [self._prompt + text for text in sentences] if self._prompt else list(sentences)
        return [encoding.ids for encoding in self._tokenizer.encode_batch(prompted)]

    @torch.inference_mode()
    def _forward(self, rows: list[list[int]]) -> np.ndarray:
        ids = torch.tensor(rows, device=self.model.device)
        features = {"input_ids": ids, "attention_mask": torch.ones_like(ids)}
        if "token_type_ids" in self._features:
            features["token_type_ids"] = torch.zeros_like(ids)
        vectors: np.ndarray = self.model(features)["sentence_embedding"].float().cpu().numpy()
        return vectors

    def _reads_like_the_model(self) -> bool:
        """Whether our reading of a text gives the very ids that the model's own preprocessing gives.

        It does for plain transformers. Where it does not (other inputs, prompts left out of the pooling), the model's
        own ``encode`` is used: slower, never wrong.
        """
        try:
            features: dict[str, Any] = self.model.preprocess([_PROBE], prompt=self._prompt)
        except (TypeError, ValueError, AttributeError):
            return False
        self._features = {key for key, value in features.items() if isinstance(value, torch.Tensor)}
        if not self._features <= {"input_ids", "attention_mask", "token_type_ids"} or "prompt_length" in features:
            return False
        if limit := self.model.max_seq_length:
            self._tokenizer.enable_truncation(int(limit))
        return bool(features["input_ids"][0].tolist() == self._ids([_PROBE])[0])


def batches_of_one_length(lengths: Sequence[int], batch_size: int) -> list[np.ndarray]:
    """Group row numbers into batches in which every row has the same length, the longest first."""
    order = np.argsort(-np.asarray(lengths), kind="stable")
    sorted_lengths = np.asarray(lengths)[order]
    groups = np.split(order, np.flatnonzero(np.diff(sorted_lengths)) + 1) if len(order) else []
    return [group[start : start + batch_size] for group in groups for start in range(0, len(group), batch_size)]


def _tokenizer_of(model: SentenceTransformer, name: str) -> Tokenizer:
    backend = getattr(model.tokenizer, "backend_tokenizer", None)
    if not isinstance(backend, Tokenizer):
        raise EncoderError(
            f"The encoder '{name}' has no tokenizer of the tokenizers library, so its texts cannot be stored as ids.",
            "Use an encoder that ships a tokenizer.json.",
        )
    tokenizer = Tokenizer.from_str(backend.to_str())
    tokenizer.no_padding()
    tokenizer.no_truncation()
    return tokenizer


def _dimension_of(model: SentenceTransformer) -> int:
    dimension = model.get_embedding_dimension()
    return int(dimension) if dimension else int(np.asarray(model.encode([_PROBE])).shape[1])


def _pooling_of(model: SentenceTransformer) -> str:
    for module in model:
        if type(module).__name__ == "Pooling":
            mode = module.get_config_dict().get("pooling_mode", "unknown")
            return "+".join(mode) if isinstance(mode, list | tuple) else str(mode)
    return "none"


def _revision_of(model: SentenceTransformer) -> str:
    commit = getattr(model.config, "_commit_hash", None)
    return str(commit or "unknown")
