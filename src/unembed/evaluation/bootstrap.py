"""Figures with their intervals, by resampling texts. Knows nothing of what is measured.

Every measure here is a function of sums over texts (a mean is a sum over a count, corpus BLEU a function of n-gram
counts), so a resample is a weighted sum, and all resamples together are one matrix product.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

LEVEL = 0.95
# Numbers in the weights of the resamples that exist at once.
_BLOCK = 1 << 22


@dataclass(frozen=True)
class Figure:
    """A value, its 95 % bootstrap interval (percentiles) and how many texts it rests on."""

    value: float
    low: float
    high: float
    n: int


class Bootstrap:
    """Draws texts with replacement; the same seed draws the same ones for every measure of as many texts."""

    def __init__(self, resamples: int = 1000, seed: int = 0) -> None:
        self.resamples = resamples
        self.seed = seed

    def mean(self, values: np.ndarray) -> Figure:
        """Return the mean of one value per text."""
        return self.ratio(values, np.ones(len(values)))

    def ratio(self, parts: np.ndarray, wholes: np.ndarray) -> Figure:
        """Return the sum of ``parts`` over the sum of ``wholes``, both one per text."""
        return self.of_sums(np.stack([parts, wholes], axis=1), lambda sums: sums[:, 0] / sums[:, 1])

    def of_sums(self, statistics: np.ndarray, compute: Callable[[np.ndarray], np.ndarray]) -> Figure:
        """Return a function of sums over texts.

        Args:
            statistics: (n, k), a row per text.
            compute: sums (r, k) in, values (r,) out.
        """
        statistics = np.asarray(statistics, dtype=np.float64)
        count = len(statistics)
        random = np.random.default_rng(self.seed)
        sums = [statistics.sum(0, keepdims=True)]
        left, block = self.resamples, max(1, _BLOCK // count)
        while left:
            weights = random.multinomial(count, np.full(count, 1.0 / count), size=min(block, left))
            sums.append(weights @ statistics)
            left -= len(weights)
        with np.errstate(invalid="ignore", divide="ignore"):  # a resample may miss a rare group altogether
            values = compute(np.concatenate(sums))
        low, high = np.nanpercentile(values[1:], [50 * (1 - LEVEL), 50 * (1 + LEVEL)])
        return Figure(float(values[0]), float(low), float(high), count)
