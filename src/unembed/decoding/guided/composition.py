"""Composition: which edits of a text, done together, should bring its vector nearest to the one that is inverted.

The differences that single edits make to the vector of a text nearly add up, if the edits do not overlap. So what a
combination leads to is predicted without the encoder, also for edits that only pay together. Plain arrays: no texts.
"""

from typing import NamedTuple

import numpy as np

_WIDTH = 48  # of the beam
_MOST_EDITS = 8


class Combination(NamedTuple):
    """Edits that are done together."""

    edits: tuple[int, ...]
    """Which of those given, in ascending order."""
    cosine: float
    """As predicted."""
    score: float
    """The cosine and the bonus of each edit."""


def compose(
    vector: np.ndarray, target: np.ndarray, differences: np.ndarray, cells: np.ndarray, bonus: np.ndarray
) -> list[Combination]:
    """Search for the best combinations: a beam search that adds one edit at a time.

    Args:
        vector: (d,) of the text that is edited.
        target: (d,) the vector that is inverted, normalised.
        differences: (m, d) what each edit adds to the vector.
        cells: (m, c) which parts of the text each edit touches; edits that share a part exclude each other.
        bonus: (m,) what each edit adds to the score besides the cosine.

    Returns:
        Combinations of one edit or more, each once; the best first.
    """
    count = len(differences)
    overlap = cells.astype(np.float32) @ cells.T.astype(np.float32) > 0
    along, squares = differences @ target, (differences**2).sum(1)
    # A combination is recognised by the sum of its edits' names, whatever their order.
    names = np.random.default_rng(0).integers(1 << 62, size=count, dtype=np.int64)
    edits: list[tuple[int, ...]] = [()]
    name, sums, extra = np.zeros(1, dtype=np.int64), vector[None], np.zeros(1)
    excluded = np.zeros((1, count), dtype=bool)
    combinations: list[Combination] = []
    for _ in range(min(_MOST_EDITS, count)):
        norms = np.sqrt((sums**2).sum(1)[:, None] + 2 * sums @ differences.T + squares)
        cosine = ((sums @ target)[:, None] + along) / np.maximum(norms, 1e-6)
        score = np.where(excluded, -np.inf, cosine + extra[:, None] + bonus)
        rows, added = _best(score, name[:, None] ^ names)
        if not len(rows):
            break
        edits = [(*edits[row], edit) for row, edit in zip(rows.tolist(), added.tolist(), strict=True)]
        combinations += [
            Combination(tuple(sorted(chosen)), float(cosine[row, edit]), float(score[row, edit]))
            for chosen, row, edit in zip(edits, rows, added, strict=True)
        ]
        name, sums, extra = name[rows] ^ names[added], sums[rows] + differences[added], extra[rows] + bonus[added]
        excluded = excluded[rows] | overlap[added]
    return sorted(combinations, key=lambda combination: -combination.score)


def _best(score: np.ndarray, names: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return rows and columns of the best scores, without those that have the same name as a better one."""
    # Two edits are reached in two orders, three in six: some of the best are the same.
    count = min(4 * _WIDTH, score.size)
    best = np.argpartition(-score, count - 1, axis=None)[:count]
    best = best[np.argsort(-score.flat[best], kind="stable")]
    best = best[np.isfinite(score.flat[best])]
    _, first = np.unique(names.flat[best], return_index=True)
    rows, columns = np.unravel_index(best[np.sort(first)[:_WIDTH]], score.shape)
    return rows, columns
