"""What an inversion must beat: random tokens, the model without its vector, the nearest text of the training set."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor

from unembed.canvas import CanvasVocabulary
from unembed.checkpoint import CheckpointInfo
from unembed.engine import WrappedEngine
from unembed.errors import StoreError
from unembed.model import Writing
from unembed.model.candidates import Candidates
from unembed.store import Store

# Rows of a store that are read at once: 50 MB of 384 numbers.
_ROWS_AT_ONCE = 1 << 15


def random_tokens(lengths: Sequence[int], vocabulary: CanvasVocabulary, seed: int) -> list[list[int]]:
    """Draw texts of given lengths, uniformly over the tokens that a text may have."""
    allowed = np.setdiff1d(np.arange(vocabulary.size), vocabulary.special)
    random = np.random.default_rng(seed)
    return [random.choice(allowed, length).tolist() for length in lengths]


class Unconditional(WrappedEngine):
    """An :class:`~unembed.engine.Engine` that never sees the vector when it chooses tokens.

    The length is still read from the vector, so this baseline lacks only what the vector says about the words.
    """

    def condition(self, embeddings: Tensor, dropped: Tensor | None = None, candidates: Candidates | None = None) -> Any:
        """Drop every vector."""
        every = torch.ones(len(embeddings), dtype=torch.bool, device=embeddings.device)
        return self.inside.condition(embeddings, every, candidates)

    def shorten(self, condition: Any) -> Any:
        """Return the condition as it is: without a vector no token can be left out."""
        return condition

    @property
    def writes(self) -> bool:
        """Return no: the writer was never trained without a vector."""
        return False

    def writing(self, embeddings: Tensor) -> Writing | None:
        """Return nothing, for the same reason."""
        return None

    def resemblance(self, canvas: Tensor, embeddings: Tensor) -> Tensor | None:
        """Return nothing: the vector is not compared."""
        return None


def check_store(store: Store, info: CheckpointInfo) -> None:
    """Refuse a store whose vectors or tokens are not those of the inverter."""
    ours, theirs = info.encoder, store.manifest.encoder
    if (theirs, store.manifest.tokenizer_hash) != (ours, info.tokenizer_hash):
        raise StoreError(
            f"The store in {store.folder} holds vectors of '{theirs.name}' (revision {theirs.revision}, prompt "
            f"{theirs.prompt!r}); the inverter reads those of '{ours.name}' (revision {ours.revision}, prompt "
            f"{ours.prompt!r}).",
            "Give the store that the inverter was trained on, or leave out `store`.",
        )


def nearest_neighbours(vectors: np.ndarray, store: Store, on_rows: Callable[[int], None]) -> list[list[int]]:
    """Return the tokens of the store's text that is nearest to each vector by cosine.

    ``on_rows`` is called with how many rows were read.
    """
    targets = vectors / np.linalg.norm(vectors, axis=1, keepdims=True)
    best = np.full(len(vectors), -np.inf, dtype=np.float32)
    owner = np.zeros(len(vectors), dtype=np.int64)
    for start in range(0, len(store), _ROWS_AT_ONCE):
        rows = np.arange(start, min(start + _ROWS_AT_ONCE, len(store)))
        stored = store.embeddings(rows)
        cosines = targets @ (stored / np.maximum(np.linalg.norm(stored, axis=1, keepdims=True), 1e-12)).T
        nearest = cosines.argmax(1)
        value = np.take_along_axis(cosines, nearest[:, None], 1)[:, 0]
        owner = np.where(value > best, rows[nearest], owner)
        best = np.maximum(best, value)
        on_rows(len(rows))
    return [ids[:length] for ids, length in zip(store.tokens(owner).tolist(), store.lengths[owner], strict=True)]


def count_tokens(store: Store) -> np.ndarray:
    """Return how often each token stands in a store."""
    vocabulary = store.manifest.vocabulary
    counts = np.zeros(vocabulary.total, dtype=np.int64)
    for start in range(0, len(store), _ROWS_AT_ONCE):
        rows = np.arange(start, min(start + _ROWS_AT_ONCE, len(store)))
        counts += np.bincount(store.tokens(rows).ravel(), minlength=vocabulary.total)
    return counts[: vocabulary.size]
