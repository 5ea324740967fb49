"""What an audit can find, as rules with stable ids, for SARIF and JUnit. An id never changes its meaning.

The wording is careful on purpose: how much is recovered depends on the encoder, on the length of the texts, and on the
attacker. A finding says what was recovered here, not what is possible at most.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from hashlib import sha256
from typing import Literal

from unembed.auditing import Audit
from unembed.auditing.leaks import KINDS, SPECIAL_CATEGORIES
from unembed.auditing.result import LeakCount
from unembed.auditing.verdict import explain, headline
from unembed.measures import percent
from unembed.report.page import write_flags

Level = Literal["error", "warning", "note"]
_DEPENDS = "How much can be recovered depends on the encoder, the length of the texts and the attacker."
_PROTECT = (
    "Protect the vectors like the texts: the same access rules, encryption, retention and deletion. Close exports and "
    "interfaces that return raw vectors."
)


@dataclass(frozen=True)
class Rule:
    """Something that can be found."""

    id: str
    name: str
    summary: str
    description: str
    help: str
    severity: float
    """From 0 to 10, as code scanning sorts by it."""


READABLE = Rule(
    "UNEMBED001",
    "TextsReadBackFromVectors",
    "Texts can be read back from their vectors",
    "An attacker with a copy of the vectors reads back more of the texts in substance than the threshold allows. "
    f"{_DEPENDS}",
    f"{_PROTECT} If vectors have left your control, assess it like a leak of the texts. `unembed defend` measures what "
    "noise, rounding, fewer dimensions or a secret rotation would hide, and what they cost a search.",
    8.0,
)
UNDECIDED = Rule(
    "UNEMBED002",
    "NoVerdict",
    "The audit could not clear the vectors",
    "The interval holds the threshold, or the method cannot see enough of the texts. This is no all-clear.",
    "Do what the message says would decide it: more vectors, texts like yours for the calibration, or an inverter for "
    "longer texts or another language.",
    5.0,
)
CREDENTIALS = Rule(
    "UNEMBED003",
    "CredentialsInVectors",
    "Vectors give back credentials or account numbers",
    f"Recovered texts hold credentials, card numbers, bank accounts or social security numbers. {_DEPENDS}",
    f"Change the credentials. Remove such items before texts are embedded, and embed these texts again. {_PROTECT}",
    9.0,
)
SPECIAL = Rule(
    "UNEMBED004",
    "SpecialCategoriesInVectors",
    "Vectors give back health, beliefs or other special categories",
    f"Recovered texts hold terms of the special categories of Art. 9 GDPR. {_DEPENDS}",
    f"Find out whether they are said of people. If so, the vectors are special-category data. {_PROTECT}",
    8.0,
)
PERSONAL = Rule(
    "UNEMBED005",
    "PersonalInformationInVectors",
    "Vectors give back information about people",
    f"Recovered texts hold names, addresses, numbers, dates or places. {_DEPENDS}",
    f"Where the texts are personal data, treat the vectors as personal data. {_PROTECT}",
    6.0,
)
OWN = Rule(
    "UNEMBED006",
    "OwnKindInVectors",
    "Vectors give back a kind of information that you asked for",
    f"Recovered texts hold what unembed audit --detect or --terms looked for. {_DEPENDS}",
    _PROTECT,
    6.0,
)
WORSE = Rule(
    "UNEMBED007",
    "WorseThanBaseline",
    "More is recovered than in the baseline",
    f"A figure is higher than in the earlier report, beyond what chance explains. {_DEPENDS}",
    "Find out what changed: the texts, the encoder's settings, how vectors are stored, or the version of unembed.",
    6.0,
)
RULES = (READABLE, UNDECIDED, CREDENTIALS, SPECIAL, PERSONAL, OWN, WORSE)
"""All rules, in the order of their ids."""
_SECRET = ("credentials", "card numbers", "bank accounts", "social security numbers")


@dataclass(frozen=True)
class Finding:
    """A rule that an audit has found something for."""

    rule: Rule
    level: Level
    message: str
    subject: str = ""
    """The kind of information or the figure that it is about; part of the fingerprint."""
    is_new: bool | None = None
    """Whether the baseline did not have it; None without a baseline."""

    def fingerprint(self, source: str) -> str:
        """Return what stays the same from run to run: the rule, the source and the subject, but no figure."""
        return sha256("\0".join((self.rule.id, source, self.subject)).encode()).hexdigest()


def find(audit: Audit) -> list[Finding]:
    """Return what an audit found: the verdict first, then kinds of information, then what got worse."""
    return [*_verdict(audit), *_kinds(audit), *_worse(audit)]


def rule_of(kind: str) -> Rule:
    """Return the rule that a kind of information falls under."""
    if kind in _SECRET:
        return CREDENTIALS
    if kind in SPECIAL_CATEGORIES:
        return SPECIAL
    return PERSONAL if kind in KINDS else OWN


def _verdict(audit: Audit) -> Iterator[Finding]:
    outcome = audit.verdict.outcome
    if outcome == "below":
        return
    message = write_flags(f"{headline(audit)}. {' '.join(explain(audit))}")
    is_new = None if audit.comparison is None else audit.comparison.outcome != outcome
    above = outcome == "above"
    yield Finding(READABLE if above else UNDECIDED, "error" if above else "warning", message, is_new=is_new)


def _kinds(audit: Audit) -> Iterator[Finding]:
    attack = audit.deciding
    before = {
        change.what: change.before.value
        for change in (audit.comparison.changes if audit.comparison else [])
        if change.attacker == attack.name
    }
    for leak in attack.leaks:
        if not leak.given_back:
            continue
        level: Level = "note"
        if attack.known:
            level = "error" if leak.share.low > audit.verdict.threshold else "warning"
        is_new = None if audit.comparison is None else not before.get(leak.kind)
        yield Finding(rule_of(leak.kind), level, describe_leak(audit, leak), leak.kind, is_new)


def describe_leak(audit: Audit, leak: LeakCount) -> str:
    """Say how often a kind of information came back."""
    attack = audit.deciding
    share = f"{percent(leak.share.value)}, 95% interval {percent(leak.share.low)} to {percent(leak.share.high)}"
    if attack.known:
        return (
            f"{leak.kind}: {leak.given_back:,} of {attack.n:,} vectors give one back word for word ({share}); "
            f"{leak.holding or 0:,} of the texts hold one. {attack.name.capitalize()} attacker."
        )
    return (
        f"{leak.kind}: {leak.given_back:,} of {attack.n:,} recovered texts show one ({share}). The texts are not "
        f"known, so it cannot be said which are true. {attack.name.capitalize()} attacker."
    )


def _worse(audit: Audit) -> Iterator[Finding]:
    if audit.comparison is None:
        return
    for change in audit.comparison.worse:
        message = (
            f"{change.label}, {change.attacker} attacker: {percent(change.before.value)} in the baseline of "
            f"{audit.comparison.made[:10]}, now {percent(change.after.value)} (difference "
            f"{100 * change.difference.low:+.1f} to {100 * change.difference.high:+.1f} points, widened for the "
            "number of comparisons)."
        )
        yield Finding(WORSE, "warning", message, f"{change.attacker} {change.what}", True)
