"""The results of an audit as plain values: all that a report shows, and no more text than it may show."""

from dataclasses import dataclass
from typing import Literal

from unembed.audit.encoder import Identified
from unembed.audit.leaks import Kind
from unembed.connectors import StorageInfo
from unembed.connectors.source import Id
from unembed.evaluation import Figure

AttackerName = Literal["blind", "guided"]
"""``blind``: from the vector alone. ``guided``: the attacker also has the encoder, and asks it on the way."""


@dataclass(frozen=True)
class SourceFacts:
    """The vector database, or file of vectors, that was audited."""

    name: str
    storage: StorageInfo
    dim: int
    vectors: int
    """That can be used."""
    skipped: dict[str, int]
    norms: tuple[float, float, float]
    """The least, the mean and the greatest."""
    texts: bool
    """Whether it holds the texts as well as the vectors."""
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
    """A vector, its text where it is known, and what was read out of it; masked unless texts may be shown."""

    row: int
    """Its index in the sample."""
    id: Id
    token_f1: float
    cosine: float | None
    original: str | None
    recovered: str
    same: list[bool]
    """For each word of ``recovered``, whether the original has it too; empty where that is not known."""
    leaks: list[Kind]


@dataclass(frozen=True)
class Attack:
    """What one attacker recovers."""

    name: AttackerName
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
    """Where the known texts come from."""
    n: dict[AttackerName, int]
    errors: dict[AttackerName, float]
    """How far off the estimated token F1 of one text is, on average, on texts that were not fitted to."""


@dataclass(frozen=True)
class Verdict:
    """The figure that decides."""

    exposed: bool
    attacker: AttackerName
    readable: Figure
    """Share of vectors from which at least half of the words come back."""
    threshold: float


@dataclass(frozen=True)
class Audit:
    """All results."""

    unembed_version: str
    made: str
    source: SourceFacts
    encoder: Identified
    inverter: dict[str, str | int | float]
    sample: int
    seed: int
    attacks: list[Attack]
    calibration: Calibration | None
    verdict: Verdict
    assumptions: list[str]
    command: str
    shows_text: bool
    canvas_length: int
