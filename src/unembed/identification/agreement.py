"""Whether an encoder gives stored vectors again for the texts that are stored with them. Loads no encoder."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from unembed.encoders import Encoder
from unembed.measures import cosine

# Rounding to half precision or 8 bits, of vectors or weights, stays above the first. Below the second nothing agrees.
SAME, FOREIGN = 0.97, 0.5
# How much of the way from chance to 1 the cosine must go before vectors agree in part. Any two vectors of some encoders
# have a cosine of 0.8.
_IN_PART = 0.25


@dataclass(frozen=True)
class Agreement:
    """How well the vectors that an encoder gives texts agree with those that are stored with the texts."""

    prompt: str
    """What was put before each text."""
    median: float
    """Of the cosines."""
    by_chance: float
    """The median of the cosines with the stored vectors of other texts."""
    same: int
    """Texts whose vector is the stored one, up to rounding."""
    texts: int

    @property
    def whole(self) -> bool:
        """Whether the encoder made the vectors."""
        return self.median >= SAME

    @property
    def in_part(self) -> bool:
        """Whether texts and vectors belong together, although the vectors are others."""
        return self.median >= max(FOREIGN, self.by_chance + _IN_PART * (1.0 - self.by_chance))


def compare(encoder: Encoder, texts: Sequence[str], vectors: np.ndarray, prompts: Sequence[str] = ("",)) -> Agreement:
    """Embed texts with each of the prompts, and compare with the stored vectors (n, d) of these texts.

    Returns:
        The agreement with the prompt that agrees best.
    """
    return max((_agreement(encoder, texts, vectors, prompt) for prompt in prompts), key=lambda one: one.median)


def _agreement(encoder: Encoder, texts: Sequence[str], vectors: np.ndarray, prompt: str) -> Agreement:
    again = encoder.encode([prompt + text for text in texts])
    cosines = cosine(again, vectors)
    others = cosine(again, np.roll(vectors, 1, axis=0)) if len(texts) > 1 else np.zeros(1)
    return Agreement(
        prompt=prompt or encoder.description.prompt or "",
        median=float(np.median(cosines)),
        by_chance=max(0.0, float(np.median(others))),
        same=int((cosines >= SAME).sum()),
        texts=len(texts),
    )
