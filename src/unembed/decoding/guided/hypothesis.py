"""The texts that a guided search tries, and what is known about each. Plain data."""

from dataclasses import dataclass, field

import numpy as np

Ids = tuple[int, ...]
Slots = tuple[int, ...]


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
    """Mean log-probability of its tokens, each given the vector and most of the others; the parent's until known."""
    parent: "Hypothesis | None" = None
    """The hypothesis that it was made from; None for a blind first one."""
    move: str = ""
    """The name of the move that made it."""
    slots: Slots = ()
    """The identity of each token, see :mod:`unembed.decoding.guided.edits`."""
    predicted: tuple | None = None
    confidence: list[float] | None = None
    """Probability of each token; None until the denoiser was asked."""
    proposals: dict[str, list[Ids]] = field(default_factory=dict)
    """Changed texts that were not tried yet, by the name of the move; the most promising last."""


@dataclass(frozen=True)
class Attempt:
    """A text that is about to be embedded."""

    ids: Ids
    fluency: float
    """As far as it is known."""
    parent: Hypothesis | None = None
    move: str = ""
    predicted: tuple | None = None
