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


class WriterJudge:
    """Says how likely texts are, given their vector."""

    def __init__(self, writing: Writing, length_scores: Tensor) -> None:
        self._writing = writing
        self._length_scores = length_scores

    @classmethod
    def of(cls, engine: Engine, embeddings: Tensor) -> Self | None:
        """Return what asks an engine's writer about vectors (n, d); None where there is no writer."""
        with torch.no_grad():
            writing = engine.writing(embeddings)
            if writing is None:
                return None
            return cls(writing, engine.length_logits(embeddings).float().log_softmax(-1).cpu())

    @torch.no_grad()
    def log_likelihoods(self, row: int, texts: Sequence[Ids]) -> np.ndarray:
        """Return the log-probability of each text (n,), its length included."""
        likelihoods = np.empty(len(texts))
        by_length: dict[int, list[int]] = {}
        for number, ids in enumerate(texts):
            by_length.setdefault(len(ids), []).append(number)
        device = self._writing.offsets.device
        for length, numbers in by_length.items():
            for start in range(0, len(numbers), _TEXTS_AT_ONCE):
                part = numbers[start : start + _TEXTS_AT_ONCE]
                canvas = torch.tensor([texts[number] for number in part], device=device)
                likelihoods[part] = self._writing.log_likelihoods(canvas, row).float().cpu().numpy()
            likelihoods[numbers] += float(self._length_scores[row, length - 1])
        return likelihoods
