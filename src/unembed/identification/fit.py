"""Whether vectors look like those of a known encoder. Embeds nothing."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from unembed.identification.known import KnownVectors

# Vectors of the encoder deviate less than this share of the way from the usual deviation to that of random directions.
# Domains differ: benchmarks/identification.py measures both sides.
_TOWARDS_RANDOM = 0.7


@dataclass(frozen=True)
class Fit:
    """How well vectors fit the fingerprint of an encoder."""

    known: KnownVectors
    distance: float
    """Mean squared deviation from its means, in its spreads; 1 is usual."""
    doubts: tuple[str, ...]
    """Why the vectors cannot be this encoder's; empty if they can be."""

    @property
    def prompt(self) -> str:
        """With which the fingerprint was made."""
        return self.known.prompt

    def explain(self) -> str:
        """Say how well they fit, as a sentence."""
        if self.doubts:
            return f"The fingerprint does not fit: {'; '.join(self.doubts)}."
        prompt = f" with the prompt '{self.prompt}'" if self.prompt else ""
        return f"The fingerprint{prompt} fits: the deviation is {self.distance**0.5:.2f} times the usual one."


def best_fit(variants: Sequence[KnownVectors], vectors: np.ndarray) -> Fit | None:
    """Return how well vectors (n, d) fit that one of an encoder's fingerprints that they fit best."""
    fits = [_fit(known, vectors) for known in variants]
    return min(fits, key=lambda fit: (bool(fit.doubts), fit.distance), default=None)


def _fit(known: KnownVectors, vectors: np.ndarray) -> Fit:
    fingerprint = known.fingerprint
    distance, random = fingerprint.distance(vectors), fingerprint.random_distance()
    doubts = fingerprint.doubts(vectors)
    if not doubts and distance > 1.0 + _TOWARDS_RANDOM * (random - 1.0):
        doubts.append(
            f"their numbers deviate from its means {distance**0.5:.2f} times as much as usual, and those of random "
            f"vectors {random**0.5:.2f} times"
        )
    return Fit(known, distance, tuple(doubts))
