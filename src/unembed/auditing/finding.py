"""How far a search for a word can be trusted: what share of the texts that hold a word it misses, by their length.

Measured on known texts by ``benchmarks/calibration.py``, for the inverter that comes with the package.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from unembed.auditing.calibration import Calibration
from unembed.measures import percent

RANKS = (1, 2, 3, 5, 8, 12, 20, 30, 50, 100, 200, 500, 1000)
"""Numbers of likeliest words that the shares were measured for."""
LENGTHS = (8, 16, 32, 64, 128, 512)
"""Tokens: upper limits of the classes of texts."""


@dataclass(frozen=True)
class Trust:
    """How often texts of some length give a word away that they hold, and how often a word that is named is there."""

    tokens: int
    """Longest texts of the class."""
    texts: int
    """That it was measured on."""
    recall: Sequence[float]
    """For each of ``RANKS``: share of a text's content words that are among so many of its likeliest words."""
    precision: Sequence[float]
    """For each of ``RANKS``: share of that many likeliest words that the text holds."""

    def missed(self, top: int) -> float:
        """Return the share of texts with a word that are missed when the ``top`` likeliest words are searched."""
        return 1.0 - _between(self.recall, top)

    def right(self, top: int) -> float:
        """Return the share of the ``top`` likeliest words that are really there."""
        return _between(self.precision, top)

    def explain(self, top: int) -> str:
        """Say how far the ``top`` likeliest words can be trusted."""
        return (
            f"Measured on {self.texts:,} known texts of {self._lengths} tokens: a text that holds a word does not have "
            f"it among its {top:,} likeliest words in {percent(self.missed(top))} of cases, and of the words that are "
            f"named {percent(self.right(top))} are really there. So no hit is no all-clear."
        )

    @property
    def _lengths(self) -> str:
        shorter = [limit for limit in LENGTHS if limit < self.tokens]
        return f"{max(shorter, default=0) + 1} to {self.tokens}"


def typical_tokens(calibration: Calibration, vectors: np.ndarray) -> float:
    """Return how long the texts of some vectors seem to be."""
    return float(np.exp(np.median(calibration.clues.read(vectors)[:, 0])))


def trust_for(calibration: Calibration, tokens: float) -> Trust:
    """Return what was measured on texts of about so many tokens."""
    classes = [_read(row) for row in calibration.words]
    return next((each for each in classes if tokens <= each.tokens), classes[-1])


def _read(row: Mapping[str, Any]) -> Trust:
    return Trust(row["tokens"], row["texts"], row["recall"], row["precision"])


def _between(shares: Sequence[float], top: int) -> float:
    """Return the share at a rank, on the line between its neighbours in the logarithm of the rank."""
    return float(np.interp(math.log(top), [math.log(rank) for rank in RANKS], shares))
