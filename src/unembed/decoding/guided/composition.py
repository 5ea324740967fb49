"""Composition: which edits of a text, done together, should bring its vector nearest to the one that is inverted.

The differences that single edits make to the vector of a text nearly add up, if the edits do not overlap. So what a
combination leads to is predicted without the encoder, also for edits that only pay together. Plain arrays: no texts.
"""

from dataclasses import dataclass

import numpy as np

_WIDTH = 48
_DEEPEST = 8


@dataclass(frozen=True)
class Composition:
    """Edits that are done together."""

    edits: tuple[int, ...]
    """Which of those given, in ascending order."""
    cosine: float
    """As predicted."""


def compose(
    vector: np.ndarray, target: np.ndarray, differences: np.ndarray, cells: np.ndarray, bonus: np.ndarray
) -> list[Composition]:
    """Search for the best combinations of edits, one more edit at a time.

    Args:
        vector: (d,) of the text that is edited.
        target: (d,) the vector that is inverted, normalised.
        differences: (m, d) what each edit adds to the vector.
        cells: (m, c) which parts of the text each edit touches; edits that share a part exclude each other.
        bonus: (m,) what each edit adds to the score besides the cosine.

    Returns:
        Combinations of any size, each once; the best by cosine and bonus first.
    """
    count = len(differences)
    if not count:
        return []
    along, lengths = differences @ target, (differences**2).sum(1)
    cells = cells.astype(np.float32)
    overlap = cells @ cells.T > 0
    names = np.random.default_rng(0).integers(1 << 62, size=count, dtype=np.int64)
    sums, blocked = vector[None].copy(), np.zeros((1, count), dtype=bool)
    extra, name, chosen = np.zeros(1), np.zeros(1, dtype=np.int64), [()]
    found: list[tuple[float, tuple[int, ...], float]] = []
    for _ in range(min(_DEEPEST, count)):
        squared = (sums**2).sum(1)[:, None] + 2 * sums @ differences.T + lengths
        cosine = ((sums @ target)[:, None] + along) / np.sqrt(np.maximum(squared, 1e-12))
        score = np.where(blocked, -np.inf, cosine + extra[:, None] + bonus)
        best = np.argpartition(-score, min(4 * _WIDTH, score.size) - 1, axis=None)[: 4 * _WIDTH]
        best = best[np.argsort(-score.flat[best], kind="stable")]
        best = best[np.isfinite(score.flat[best])]
        rows, added = np.unravel_index(best, score.shape)
        _, first = np.unique(name[rows] ^ names[added], return_index=True)
        keep = np.sort(first)[:_WIDTH]
        rows, added = rows[keep], added[keep]
        if not len(rows):
            break
        chosen = [(*chosen[row], int(edit)) for row, edit in zip(rows, added, strict=True)]
        found += [
            (float(score[row, edit]), tuple(sorted(edits)), float(cosine[row, edit]))
            for row, edit, edits in zip(rows, added, chosen, strict=True)
        ]
        sums, blocked = sums[rows] + differences[added], blocked[rows] | overlap[added]
        extra, name = extra[rows] + bonus[added], name[rows] ^ names[added]
    found.sort(key=lambda each: -each[0])
    return [Composition(edits, cosine) for _, edits, cosine in found]
