"""The texts that a guided search tries, and what is known about each. Plain data."""

from dataclasses import dataclass, field
from typing import NamedTuple

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
    """Sum of the log-probabilities of its tokens, each given the vector and most of the others; at first an estimate."""
    parent: "Hypothesis | None" = None
    """The hypothesis that it was made from; None for a blind first one."""
    move: str = ""
    """The name of the move that made it."""
    slots: Slots = ()
    """The identity of each token, see :mod:`unembed.decoding.guided.edits`."""
    predicted: tuple | None = None
    confidence: list[float] | None = None
    """Probability of each token; None until the denoiser was asked."""
    judged: bool = False
    """Whether the denoiser was asked for its fluency."""
    proposals: dict[str, list["Proposal"]] = field(default_factory=dict)
    """Changed texts that were not tried yet, by the name of the move; the most promising last."""


class Proposal(NamedTuple):
    """A changed text."""

    ids: Ids
    fluency: float
    """By how much the change alters the fluency, as far as the denoiser can tell; 0 if it was not asked."""


@dataclass(frozen=True)
class Attempt:
    """A text that is about to be embedded."""

    ids: Ids
    fluency: float
    """As far as it is known."""
    parent: Hypothesis | None = None
    move: str = ""
    predicted: tuple | None = None
