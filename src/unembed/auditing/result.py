"""The results of an audit as plain values: all that a report shows, and no more text than it may show.

The rows hold what was measured or estimated for each vector. Everything else in an attack is computed from them
(``findings.py``), so that every number can be traced to its rows.
"""

from dataclasses import dataclass
from typing import Literal

from unembed.auditing.encoder import Identified
from unembed.auditing.leaks import Coverage, Kind
from unembed.connectors import StorageInfo
from unembed.connectors.source import Id
from unembed.evaluation import Figure

AttackerName = Literal["blind", "guided"]
"""``blind``: from the vector alone. ``guided``: the attacker also has the encoder, and asks it on the way."""
Outcome = Literal["above", "below", "undecided"]
"""Of the threshold: whether more texts can be read back, fewer, or it cannot be said."""


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
class Row:
    """What an attacker got out of one vector of the sample."""

    row: int
    """Its index in the sample."""
    id: Id
    """Masked unless texts may be shown."""
    tokens: float
    """Length of its text; an estimate where the text is not known."""
    language: str | None
    """Of its text; None where it is not known."""
    values: dict[str, float]
    """Each measure of the recovery, and whether the method can see the text: see ``SIGHT``. Where the text is not
    known, these are the expected values."""
    chances: list[float]
    """Probability of each tenth of ``passage_recall``. If the text is known, one of them is 1."""
    confidence: float
    agreement: float
    encoder_calls: int
    seconds: float
    held: list[Kind] | None
    """Kinds of information that the text holds; None where it is not known."""
    given: list[Kind]
    """Kinds that came back word for word; where the text is not known, kinds that the recovered text shows."""
    early: dict[str, float] | None = None
    """The measures after a tenth of the guided attacker's budget; None for the blind one."""


SIGHT = ("too_long", "other_language", "unseen", "not_cleared")
"""Whether a text is longer than the inverter writes; whether it is in a language that the inverter does not
write; either;
either, or readable."""


@dataclass(frozen=True)
class Group:
    """Texts of like length."""

    name: str
    n: int
    readable: Figure
    passage_recall: Figure


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
    coverage: Coverage
    """In which languages it is found."""


@dataclass(frozen=True)
class Example:
    """The texts of one row; masked unless texts may be shown."""

    row: int
    """The index in the sample: of the row that has its figures."""
    original: str | None
    recovered: str
    same: list[bool]
    """For each word of ``recovered``, whether the original has it too; empty where that is not known."""


@dataclass(frozen=True)
class PatientAttacker:
    """What ten times the budget would give, if it adds as much as the last tenfold of the budget did."""

    calls: int
    """Texts embedded for each vector, at most."""
    early_calls: int
    """A tenth of the budget that was spent."""
    figures: dict[str, Figure]
    """Of ``readable`` and other measures; not run, but extended from the curve."""


@dataclass(frozen=True)
class Attack:
    """What one attacker recovers."""

    name: AttackerName
    n: int
    known: bool
    """Whether the figures were measured against the stored texts, or estimated."""
    figures: dict[str, Figure]
    distribution: list[float]
    """Vectors by ``passage_recall``, in ten steps from 0 to 1; expected numbers where it is estimated."""
    by_length: list[Group]
    leaks: list[LeakCount]
    worst: list[Example]
    """The vectors that give away most."""
    borderline: list[Example]
    """Readable texts of which least came back: what the threshold of the measure means."""
    patient: PatientAttacker | None
    seconds_per_vector: float
    encoder_calls: float
    """Texts embedded for each vector, on average."""
    rows: list[Row]


@dataclass(frozen=True)
class CalibrationFacts:
    """What the estimate rests on, where the texts are not known."""

    texts: str
    """Where the known texts come from."""
    kinds: list[str]
    n: int
    widening: float
    """By how much the interval is widened, in units of the arcsine of the root of a share."""


@dataclass(frozen=True)
class Verdict:
    """What is decided, and the figures that decide it."""

    outcome: Outcome
    attacker: AttackerName
    readable: Figure
    """Share of texts that come back in substance."""
    not_cleared: Figure
    """Share of texts that come back or that the method cannot see: must lie below the threshold for an all-clear."""
    threshold: float
    enough: int | None
    """How many vectors would probably decide it; None if it is decided, or more vectors would not help."""


@dataclass(frozen=True)
class Change:
    """How one figure differs from that of an earlier audit."""

    attacker: AttackerName
    what: str
    """The measure, or the kind of information."""
    label: str
    before: Figure
    after: Figure
    difference: Figure
    """Of which the interval decides."""
    state: Literal["worse", "better", "same"]


@dataclass(frozen=True)
class Comparison:
    """What differs from an earlier audit, the baseline."""

    source: str
    """That the earlier audit was of."""
    made: str
    outcome: Outcome
    """Of the earlier audit."""
    changes: list[Change]

    @property
    def worse(self) -> list[Change]:
        """What leaks more than before, beyond chance."""
        return [change for change in self.changes if change.state == "worse"]

    @property
    def better(self) -> list[Change]:
        """What leaks less than before, beyond chance."""
        return [change for change in self.changes if change.state == "better"]


@dataclass(frozen=True)
class Audit:
    """All results."""

    unembed_version: str
    made: str
    source: SourceFacts
    encoder: Identified
    inverter: dict[str, str | int | float]
    languages: list[str]
    """That the inverter writes; empty if they are not known."""
    sample: int
    wanted: int
    """Size of the sample that was asked for; more than ``sample`` if the audit was interrupted."""
    seed: int
    attacks: list[Attack]
    calibration: CalibrationFacts | None
    verdict: Verdict
    assumptions: list[str]
    command: str
    shows_text: bool
    canvas_length: int
    comparison: Comparison | None = None
    """With a baseline, if one was given."""

    @property
    def deciding(self) -> Attack:
        """The attack that the verdict rests on."""
        return next(attack for attack in self.attacks if attack.name == self.verdict.attacker)

    def _repr_html_(self) -> str:
        """Return the table that a notebook shows."""
        from unembed.auditing.table import to_html

        return to_html(self)
