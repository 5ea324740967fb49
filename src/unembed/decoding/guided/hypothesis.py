"""The texts that a guided search tries, and what is known about each. Plain data."""

from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

Ids = tuple[int, ...]
Slots = tuple[int, ...]


class Proposal(NamedTuple):
    """A changed text that could be tried."""

    ids: Ids
    fluency: float = 0.0
    """By how much the change raises the fluency, as far as the denoiser was asked."""


@dataclass(eq=False)
class Hypothesis:
    """A text that was embedded."""

    ids: Ids
    text: str
    vector: np.ndarray
    """(d,) the encoder's vector of the text, normalised."""
    cosine: float
    """Of that vector with the one that is inverted."""
    fluency: float
    """Sum of the log-probabilities of its tokens, each given the vector and most of the others. An estimate until the
    denoiser was asked about this very text."""
    parent: "Hypothesis | None" = None
    """The hypothesis that it was made from; None for a blind first one."""
    move: str = ""
    """The name of the move that made it."""
    slots: Slots = ()
    """The slot of each token, see :mod:`unembed.decoding.guided.edits`."""
    confidence: list[float] | None = None
    """Probability of each token; None until the denoiser was asked."""
    proposals: dict[str, list[Proposal]] = field(default_factory=dict)
    """Changed texts that were not tried yet, by the name of the move; the most promising last."""

    @property
    def judged(self) -> bool:
        """Whether the denoiser was asked about it."""
        return self.confidence is not None


@dataclass(frozen=True)
class Attempt:
    """A text that is about to be embedded."""

    ids: Ids
    fluency: float
    """As far as it is known."""
    parent: Hypothesis | None = None
    move: str = ""
    expected: float = 0.0
    """The cosine that was predicted, of a combination of edits."""
    used: tuple[str, ...] = ()
    """The moves that first tried each edit of a combination."""
