"""Asks the writer how likely whole texts are. Knows no search."""

from collections.abc import Sequence
from typing import Self

import numpy as np
import torch
from torch import Tensor

from unembed.decoding.guided.hypothesis import Ids
from unembed.engine import Engine
from unembed.model import Writing

_TEXTS_AT_ONCE = 128
# What is said of a text that no canvas holds: it is worse than any other.
_IMPOSSIBLE = -1e4
_KEPT = 20_000


class WriterJudge:
    """Says how likely texts are, given their vector."""

    def __init__(self, writing: Writing, length_scores: Tensor) -> None:
        self._writing = writing
        self._length_scores = length_scores
        self._known: dict[tuple[int, Ids], float] = {}

    @classmethod
    def of(cls, engine: Engine, embeddings: Tensor) -> Self | None:
        """Return what asks an engine's writer about vectors (n, d); None where there is no writer."""
        with torch.no_grad():
            writing = engine.writing(embeddings)
            if writing is None:
                return None
            return cls(writing, engine.length_logits(embeddings).float().log_softmax(-1).cpu())

    def log_likelihoods(self, row: int, texts: Sequence[Ids]) -> np.ndarray:
        """Return the log-probability of each text (n,), its length included. What was asked before is remembered."""
        if len(self._known) > _KEPT:
            self._known.clear()
        new = [ids for ids in dict.fromkeys(texts) if (row, ids) not in self._known]
        self._known |= {(row, ids): value for ids, value in zip(new, self._ask(row, new).tolist(), strict=True)}
        return np.array([self._known[row, ids] for ids in texts])

    @torch.no_grad()
    def _ask(self, row: int, texts: Sequence[Ids]) -> np.ndarray:
        likelihoods = np.full(len(texts), _IMPOSSIBLE)
        by_length: dict[int, list[int]] = {}
        for number, ids in enumerate(texts):
            if 0 < len(ids) <= self._length_scores.shape[1]:
                by_length.setdefault(len(ids), []).append(number)
        device = self._writing.offsets.device
        for length, numbers in by_length.items():
            for start in range(0, len(numbers), _TEXTS_AT_ONCE):
                part = numbers[start : start + _TEXTS_AT_ONCE]
                canvas = torch.tensor([texts[number] for number in part], device=device)
                likelihoods[part] = self._writing.log_likelihoods(canvas, row).float().cpu().numpy()
            likelihoods[numbers] += float(self._length_scores[row, length - 1])
        return likelihoods
