"""What the vectors of an encoder look like, so that another encoder's vectors are noticed. Knows no encoder.

Mean and spread of each component are taken over vectors scaled to length one, which is all that an inverter sees of
them. They distinguish two encoders if the vectors of one have a mean direction (most have), or components that never
change. Two encoders without either look alike: the absence of a warning proves nothing.
"""

from collections.abc import Iterable

import numpy as np
from pydantic import BaseModel, ConfigDict

# A component that never changes may still be rounded: its spread is at least this share of the usual spread.
_LEAST_SPREAD = 0.02
# Mean squared deviation, in spreads, above which vectors are called strange. It is 1 for the texts of the store. Single
# vectors vary more than means, hence the margin. benchmarks/fingerprints.py measures both sides of the limit.
_FARTHEST, _MARGIN = 1.75, 0.5
_NORM_TOLERANCE = 0.1  # rounding, to half precision say, stays well within it
_SPREADS = 6.0
_ROUNDING = 1e-6
_ENOUGH = 100  # rows; the spreads of fewer are guesswork
# So many vectors of nearly one length were all multiplied by one factor.
_SEVERAL, _SAME_LENGTH = 8, 0.02


class Fingerprint(BaseModel):
    """Mean and spread of an encoder's vectors."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    rows: int
    """Vectors that it was taken from."""
    norm: float
    """Mean length of the vectors as the encoder gives them."""
    norm_spread: float
    mean: tuple[float, ...]
    """Mean of each component of the vectors scaled to length one."""
    spread: tuple[float, ...]
    """Standard deviation of each component."""

    @classmethod
    def of(cls, parts: Iterable[np.ndarray]) -> "Fingerprint | None":
        """Take the fingerprint of vectors that come in parts (n, d); None if there are none but zeros."""
        rows, norms = 0, np.zeros(2)
        sums: np.ndarray | None = None
        for part in parts:
            lengths = np.linalg.norm(part.astype(np.float64), axis=1)
            directions = part[lengths > 0].astype(np.float64) / lengths[lengths > 0, None]
            moments = np.stack([directions.sum(0), (directions**2).sum(0)])
            sums = moments if sums is None else sums + moments
            norms += lengths.sum(), (lengths**2).sum()
            rows += len(directions)
        if not rows or sums is None:
            return None
        mean, square = sums / rows
        length, length_square = norms / rows
        return cls(
            rows=rows,
            norm=_short(length),
            norm_spread=_short(np.sqrt(max(0.0, length_square - length**2))),
            mean=tuple(map(_short, mean)),
            spread=tuple(map(_short, np.sqrt(np.maximum(0.0, square - mean**2)))),
        )

    def distance(self, vectors: np.ndarray) -> float:
        """Return how far vectors (n, d) lie from the mean: their mean squared deviation, in spreads."""
        directions = vectors / np.linalg.norm(vectors, axis=1, keepdims=True)
        return float((((directions - np.asarray(self.mean)) / self._spread()) ** 2).mean())

    def random_distance(self) -> float:
        """Return the distance of vectors whose directions are random; the nearer to 1, the less it tells."""
        squares = 1.0 / len(self.mean) + np.square(self.mean)
        return float((squares / self._spread() ** 2).mean())

    def doubts(self, vectors: np.ndarray) -> list[str]:
        """Return the reasons why vectors (n, d), none of them zero, cannot be this encoder's; empty if they can be."""
        doubts = doubtful_lengths(vectors, self.norm, self.norm_spread)
        distance, farthest = self.distance(vectors), _FARTHEST + _MARGIN / np.sqrt(len(vectors))
        if self.rows >= _ENOUGH and distance > farthest:
            doubts.append(
                f"their numbers deviate from its means {distance**0.5:.1f} times as much as usual (the limit is "
                f"{farthest**0.5:.1f})"
            )
        return doubts

    def _spread(self) -> np.ndarray:
        """Return the spreads to divide by: none is next to zero."""
        least = max(_LEAST_SPREAD * float(np.median(self.spread)), _ROUNDING)
        divisors: np.ndarray = np.maximum(np.asarray(self.spread), least)
        return divisors


def doubtful_lengths(vectors: np.ndarray, norm: float, spread: float = 0.0) -> list[str]:
    """Name a vector of (n, d) whose length is not that of the encoder's vectors; empty if all lengths are plausible.

    Vectors that were multiplied for storage are plausible: they are scaled back.
    """
    if find_scale(vectors, norm, spread) is not None:
        return []
    lengths = np.linalg.norm(vectors, axis=1)
    strange = np.flatnonzero(np.abs(lengths - norm) > max(_NORM_TOLERANCE * norm, _SPREADS * spread))
    return [f"one has the length {lengths[strange[0]]:.3g} instead of {norm:.3g}"] if len(strange) else []


def find_scale(vectors: np.ndarray, norm: float, spread: float = 0.0) -> float | None:
    """Return the factor by which vectors (n, d) were multiplied for storage; None if that does not explain them.

    Whole numbers are rounded multiples, each vector of its own. Others must be several of nearly one length.
    """
    lengths = np.linalg.norm(vectors.astype(np.float64), axis=1)
    factor = float(lengths.mean() / norm) if len(lengths) else 1.0
    whole = bool((vectors == np.rint(vectors)).all())
    even = len(vectors) >= _SEVERAL and lengths.std() <= (_SAME_LENGTH + spread / norm) * lengths.mean()
    plausible = abs(factor - 1) <= max(_NORM_TOLERANCE, _SPREADS * spread / norm)
    return None if plausible or not (whole or even) else factor


def describe_scale(vectors: np.ndarray, norm: float, spread: float = 0.0) -> str | None:
    """Say by what factor vectors (n, d) were multiplied for storage, as a sentence; None if they were not."""
    factor = find_scale(vectors, norm, spread)
    if factor is None:
        return None
    rounded = " and rounded to whole numbers" if (vectors == np.rint(vectors)).all() else ""
    return f"The vectors were multiplied by about {factor:.3g}{rounded}. They are scaled back."


def _short(value: float) -> float:
    """Round to the digits that half precision leaves."""
    return float(f"{value:.6g}")
