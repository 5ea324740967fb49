"""The kinds of things that texts say about people, and when a recovered text holds one. Does not find any."""

import re
from collections.abc import Sequence
from dataclasses import dataclass

Kind = str
"""One of :data:`KINDS`, or the name of a user's own detector."""

SPECIAL_CATEGORIES: tuple[Kind, ...] = (
    "medical terms",
    "drugs",
    "religion",
    "politics",
    "trade unions",
    "ethnic origin",
    "sexuality",
    "biometric and genetic data",
)
"""The kinds that fall under Art. 9 GDPR, when they are said of a person."""

KINDS: tuple[Kind, ...] = (
    "names",
    "e-mail addresses",
    "phone numbers",
    "street addresses",
    "places",
    "dates",
    "ages",
    "amounts of money",
    "card numbers",
    "bank accounts",
    "social security numbers",
    "IP addresses",
    "credentials",
    *SPECIAL_CATEGORIES,
)
"""All kinds that are built in, in the order of the report."""

_RUN = re.compile(r"\w+")


@dataclass(frozen=True)
class Leak:
    """Something that a text says about somebody."""

    kind: Kind
    text: str

    @property
    def runs(self) -> tuple[str, ...]:
        """Its words and numbers, without what stands between them."""
        return to_runs(self.text)


def to_runs(text: str) -> tuple[str, ...]:
    """Return the words and numbers of a text in lower case, without what stands between them."""
    return tuple(_RUN.findall(text.lower()))


def gives_back(text: str, leaks: Sequence[Leak]) -> list[Leak]:
    """Return those of a reference's leaks that a recovered text holds, word for word and number for number."""
    runs = to_runs(text)
    return [leak for leak in leaks if holds(runs, leak.runs)]


def holds(runs: tuple[str, ...], part: tuple[str, ...]) -> bool:
    """Whether some words occur one after the other among others."""
    return any(runs[start : start + len(part)] == part for start in range(len(runs) - len(part) + 1))
