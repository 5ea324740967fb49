"""Token accuracy by position, by how frequent the token is, and by text length. Knows token ids only."""

from collections.abc import Sequence

import numpy as np

from unembed.evaluation.bootstrap import Bootstrap
from unembed.evaluation.table import Mode, Row

Hits = Sequence[Sequence[bool]]
"""For each text, whether each of the reference's positions was recovered."""
_RANKS = (10, 100, 1_000, 10_000)
_LENGTH_GROUPS = 8


def by_position(hits: Hits, bootstrap: Bootstrap, mode: Mode) -> list[Row]:
    """Measure each position over the texts that have it; positions count from 1."""
    rows = []
    for place in range(max(map(len, hits))):
        values = np.array([float(text[place]) for text in hits if place < len(text)])
        rows.append(Row(str(place + 1), mode, len(values), {"token_accuracy": bootstrap.mean(values)}))
    return rows


def by_frequency(
    hits: Hits, references: Sequence[Sequence[int]], counts: np.ndarray, bootstrap: Bootstrap, mode: Mode
) -> list[Row]:
    """Measure tokens in groups of their rank in ``counts``, the most frequent first."""
    ranks = np.empty(len(counts), dtype=np.int64)
    ranks[np.argsort(-counts, kind="stable")] = np.arange(1, len(counts) + 1)
    group = np.where(counts > 0, np.searchsorted(_RANKS, ranks), len(_RANKS) + 1)
    names = [f"{low + 1:,} to {high:,}" for low, high in zip((0, *_RANKS), _RANKS, strict=False)]
    rows = []
    for number, name in enumerate([*names, f"beyond {_RANKS[-1]:,}", "never seen"]):
        inside = [group[list(ids)] == number for ids in references]
        totals = np.array([part.sum() for part in inside], dtype=np.float64)
        right = np.array([part[list(text)].sum() for part, text in zip(inside, hits, strict=True)], dtype=np.float64)
        having = totals > 0
        if having.any():
            figures = {"token_accuracy": bootstrap.ratio(right[having], totals[having])}
            rows.append(Row(name, mode, int(having.sum()), figures, {"tokens": int(totals.sum())}))
    return rows


def by_length(hits: Hits, canvas_length: int, bootstrap: Bootstrap, mode: Mode) -> list[Row]:
    """Measure texts in groups of their number of tokens."""
    width = max(1, -(-canvas_length // _LENGTH_GROUPS))
    rows = []
    for start in range(1, canvas_length + 1, width):
        end = min(start + width - 1, canvas_length)
        values = np.array([np.mean(text) for text in hits if start <= len(text) <= end])
        if len(values):
            name = str(start) if start == end else f"{start} to {end}"
            rows.append(Row(name, mode, len(values), {"token_accuracy": bootstrap.mean(values)}))
    return rows
