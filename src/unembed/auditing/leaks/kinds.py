"""The kinds of things that texts say about people, in which languages they are found, and when a text gives one back.

Finds none.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass

_RUN = re.compile(r"\w+")

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


@dataclass(frozen=True)
class Coverage:
    """In which languages a kind is found."""

    languages: tuple[str, ...] = ()
    """Empty: it has the same form in every language."""
    anywhere: str = ""
    """What of it is found in every language all the same."""

    def misses(self, languages: Sequence[str]) -> list[str]:
        """Return those of some languages in which the kind, or most of it, is not found."""
        return [language for language in languages if self.languages and language not in self.languages]

    def __str__(self) -> str:
        if not self.languages:
            return "any language"
        return f"{', '.join(self.languages)}{f'; in any language {self.anywhere}' if self.anywhere else ''}"


_ENGLISH = Coverage(("English",))
_COVERAGE: dict[Kind, Coverage] = {
    "names": Coverage(("English",), "1,300 first names in Latin letters"),
    "phone numbers": Coverage(("English",), "those with a plus"),
    "street addresses": Coverage(("English", "Dutch", "French", "German", "Italian", "Portuguese", "Spanish")),
    "places": _ENGLISH,
    "dates": Coverage(("English",), "those in numbers"),
    "ages": _ENGLISH,
    "amounts of money": Coverage(("English",), "those with $, €, £ or ¥"),
    "credentials": Coverage(("English",), "keys of large services"),
    **dict.fromkeys(SPECIAL_CATEGORIES, _ENGLISH),
}


def coverage_of(kind: Kind) -> Coverage:
    """Return in which languages a kind is found; a user's own detector looks at every text alike."""
    return _COVERAGE.get(kind, Coverage())


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
