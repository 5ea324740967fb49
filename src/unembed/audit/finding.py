"""How far a search for a word can be trusted: what share of the texts that hold a word it misses, by their length.

Measured on known texts by ``benchmarks/calibration.py``, for the inverter that comes with the package.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

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


def trust_for(table: Sequence[Mapping[str, object]], tokens: float) -> Trust:
    """Return the class of the table that texts of a length belong to."""
    classes = [Trust(**row) for row in table]  # type: ignore[arg-type]
    return next((each for each in classes if tokens <= each.tokens), classes[-1])


def _between(shares: Sequence[float], top: int) -> float:
    """Return the share at a rank, on the line between its neighbours in the logarithm of the rank."""
    return float(np.interp(math.log(top), [math.log(rank) for rank in RANKS], shares))
