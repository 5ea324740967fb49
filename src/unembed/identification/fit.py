"""Whether vectors look like those of a known encoder. Embeds nothing."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from unembed.identification.known import KnownVectors


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
    fits = [
        Fit(known, known.fingerprint.distance(vectors), tuple(known.fingerprint.doubts(vectors))) for known in variants
    ]
    return min(fits, key=lambda fit: (bool(fit.doubts), fit.distance), default=None)
