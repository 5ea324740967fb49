"""What an audit finds, as plain values: all that a report shows, and no more text than it may show."""

from dataclasses import dataclass
from typing import Literal

from unembed.audit.encoder import Identified
from unembed.audit.leaks import Kind
from unembed.connectors import StorageInfo
from unembed.connectors.source import Id
from unembed.evaluation import Figure

ModeName = Literal["blind", "guided"]
"""``blind``: from the vector alone. ``guided``: the attacker also has the encoder, and asks it on the way."""

READABLE = 0.5
"""A text counts as readable when its token F1 reaches this: at least half of its words came back."""


@dataclass(frozen=True)
class StoreFacts:
    """What was looked at."""

    name: str
    keeping: StorageInfo
    dim: int
    vectors: int
    """That can be used."""
    skipped: dict[str, int]
    norms: tuple[float, float, float]
    """The least, the mean and the greatest."""
    texts: bool
    """Whether the store holds the texts beside the vectors."""
    groups: dict[str, int]


@dataclass(frozen=True)
class Group:
    """Texts of like length."""

    name: str
    n: int
    token_f1: Figure


@dataclass(frozen=True)
class LeakCount:
    """One kind of thing that texts say about people."""

    kind: Kind
    holding: int | None
    """Texts of the sample that hold one; None where the texts are not known."""
    given_back: int
    """Vectors that give one back, word for word; where the texts are not known, recoveries that show one."""
    share: Figure
    """Of all vectors of the sample."""


@dataclass(frozen=True)
class Example:
    """One vector, its text where it is known, and what was read out of it; masked unless texts may be shown."""

    id: Id
    token_f1: float
    cosine: float | None
    original: str | None
    recovered: str
    same: list[bool]
    """For each word of ``recovered``, whether the original has it too; empty where that is not known."""
    leaks: list[Kind]


@dataclass(frozen=True)
class Mode:
    """What one kind of attacker recovers."""

    name: ModeName
    n: int
    known: bool
    """Whether the figures were measured against the stored texts, or estimated."""
    figures: dict[str, Figure]
    distribution: list[int]
    """Vectors by token F1, in ten steps from 0 to 1."""
    by_length: list[Group]
    leaks: list[LeakCount]
    examples: list[Example]
    seconds_per_vector: float
    encoder_calls: float
    """Texts embedded for each vector, on average."""


@dataclass(frozen=True)
class Calibration:
    """What the estimate rests on, where the texts are not known."""

    texts: str
    """Where they come from."""
    n: dict[ModeName, int]
    errors: dict[ModeName, float]
    """How far off the estimated token F1 of one text is, on average, on texts that were not fitted to."""


@dataclass(frozen=True)
class Verdict:
    """The one figure that decides."""

    exposed: bool
    mode: ModeName
    readable: Figure
    """Share of vectors from which at least half of the words come back."""
    threshold: float


@dataclass(frozen=True)
class Audit:
    """Everything that was found."""

    unembed_version: str
    made: str
    store: StoreFacts
    encoder: Identified
    inverter: dict[str, str | int | float]
    sample: int
    seed: int
    modes: list[Mode]
    calibration: Calibration | None
    verdict: Verdict
    assumptions: list[str]
    command: str
    shows_text: bool
    canvas_length: int
