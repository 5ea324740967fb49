"""The results of measuring defences, as plain values: all that a report shows."""

from dataclasses import dataclass, field

from unembed.evaluation import Figure

LEAKAGE = "token_f1"
"""The measure by which attackers and defences are compared."""
FLOOR = 0.3
"""What the attack on undefended vectors must reach in it. Otherwise a low figure says nothing about a defence."""
MATCHED = 0.02
"""Settings are compared with one another when their search quality differs by no more than this."""


@dataclass(frozen=True)
class Example:
    """A text of the sample and what came back."""

    original: str
    recovered: str


@dataclass(frozen=True)
class AttackResult:
    """What one attacker recovered from one store."""

    name: str
    kind: str
    n: int
    figures: dict[str, Figure]
    canaries: int
    """Inserted secret sentences that it tried."""
    canary_exact: int
    """Of these, recovered word for word."""
    canary_secrets: int
    """Of these, texts in which the secret word came back."""
    seconds: float
    """For each vector."""
    problem: str = ""
    """Why there is nothing, if so."""
    examples: list[Example] = field(default_factory=list)

    @property
    def leakage(self) -> float:
        """How much it recovered; 0 if it could do nothing."""
        return self.figures[LEAKAGE].value if self.figures else 0.0


@dataclass(frozen=True)
class Leakage:
    """What all attackers recovered from one store."""

    store: str
    attacks: list[AttackResult]

    @property
    def strongest(self) -> AttackResult:
        """The attacker without the key that recovered most."""
        return max((each for each in self.attacks if each.kind != "key"), key=lambda each: each.leakage)

    @property
    def strongest_blind(self) -> AttackResult:
        """The strongest of those who neither have the key nor search with the encoder: they try every setting."""
        return max((each for each in self.attacks if each.kind not in ("key", "guided")), key=lambda each: each.leakage)

    def best_of(self, *kinds: str) -> AttackResult | None:
        """Return the strongest of some kinds of attackers, if one of them could do anything."""
        tried = [each for each in self.attacks if each.kind in kinds and each.figures]
        return max(tried, key=lambda each: each.leakage, default=None)


@dataclass(frozen=True)
class SearchResult:
    """How good searches in one defended collection are."""

    collection: str
    measure: str
    """``ndcg@10`` or ``neighbours@10``: the one that counts."""
    figures: dict[str, Figure]
    change: Figure
    """Of the measure, compared with the undefended vectors, query by query."""
    milliseconds: float
    """For each query, on the machine that measured."""
    forms: int
    """Searches that stand for one query."""


@dataclass(frozen=True)
class Setting:
    """One defence at one strength."""

    chain: str
    """As it is typed; empty for the undefended vectors."""
    family: str
    bytes_per_vector: int
    leakages: list[Leakage]
    searches: list[SearchResult]
    seconds: float
    """That measuring took."""

    @property
    def leakage(self) -> float:
        """What the strongest attackers recover that do not search with the encoder, as a mean over the stores."""
        return sum(each.strongest_blind.leakage for each in self.leakages) / len(self.leakages)

    @property
    def guided_leakage(self) -> float | None:
        """What the guided attacker recovers, as a mean over the stores; None where it did not try."""
        guided = [each.best_of("guided") for each in self.leakages]
        tried = [each.leakage for each in guided if each is not None]
        return sum(tried) / len(tried) if tried else None

    @property
    def utility(self) -> float:
        """Search quality, as a mean over the collections."""
        return sum(each.figures[each.measure].value for each in self.searches) / len(self.searches)

    @property
    def name(self) -> str:
        """What it is called in a table."""
        return self.chain or "undefended"


@dataclass(frozen=True)
class DefenceReport:
    """All results."""

    unembed_version: str
    made: str
    encoder: str
    inverter: str
    stores: dict[str, int]
    """Vectors of each store in which texts were attacked."""
    collections: dict[str, int]
    """Queries of each collection that was searched."""
    own_texts: int
    """Texts that attackers had of their own."""
    seed: int
    undefended: Setting
    settings: list[Setting]
    recommendation: list[str]
    assumptions: list[str]
    command: str
    shows_text: bool

    @property
    def means_something(self) -> bool:
        """Whether the attack reads enough out of undefended vectors to judge defences by it."""
        return self.undefended.leakage >= FLOOR

    def matched(self) -> list[list[Setting]]:
        """Return groups of settings of like search quality, best first; within each, least leakage first."""
        groups: list[list[Setting]] = []
        for setting in sorted(self.settings, key=lambda each: -each.utility):
            if groups and groups[-1][0].utility - setting.utility <= MATCHED:
                groups[-1].append(setting)
            else:
                groups.append([setting])
        return [sorted(group, key=lambda each: each.leakage) for group in groups if len(group) > 1]
