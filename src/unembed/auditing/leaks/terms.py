"""Terms that give away health, beliefs, origin or sexuality: lists of words and phrases, and a few patterns."""

import re
from functools import cache

from unembed.auditing.leaks.kinds import Kind
from unembed.auditing.leaks.rules import Span
from unembed.lists import load_lines

_LISTS: dict[Kind, str] = {
    "medical terms": "medical",
    "drugs": "drugs",
    "religion": "religion",
    "politics": "politics",
    "trade unions": "trade-unions",
    "ethnic origin": "ethnic-origin",
    "sexuality": "sexuality",
    "biometric and genetic data": "biometric-and-genetic",
}
_ORIGIN = re.compile(
    r"\bof\s(?:[a-z]+-)?(?:[a-z]+(?:ian|ish|ese|can|ean|ench|eek|aqi|ani|ali|oese)|arab|asian|thai|dutch|latin)"
    r"\s(?:descent|ancestry|heritage|origin|origins)\b"
    r"|\b(?:black|white|brown)\s(?:man|men|woman|women|people|person|boy|boys|girl|girls|male|female|teenager|student"
    r"|employee|colleague|family|families|voters)\b",
    re.IGNORECASE,
)


def find_terms(text: str) -> list[Span]:
    """Return the terms of a text.

    A term that has a capital in its list needs it in the text, unless the text has no capitals at all.
    """
    spans = [Span("ethnic origin", *match.span()) for match in _ORIGIN.finditer(text)]
    has_case = not text.islower()
    for kind, name in _LISTS.items():
        for match in terms_pattern(tuple(load_lines(name))).finditer(text):
            if not has_case or _has_its_capitals(match[0], name):
                spans.append(Span(kind, *match.span()))
    return spans


@cache
def terms_pattern(terms: tuple[str, ...]) -> re.Pattern[str]:
    """Return a pattern of terms in any case, the longest first, with any punctuation between their words."""
    ordered = sorted(terms, key=len, reverse=True)
    forms = "|".join(r"[\W_]{1,3}".join(map(re.escape, re.findall(r"\w+", term))) for term in ordered)
    return re.compile(rf"(?<!\w)(?:{forms})(?!\w)", re.IGNORECASE)


@cache
def _capitals(name: str) -> frozenset[tuple[str, ...]]:
    """Return the terms of a list that are written with capitals."""
    return frozenset(_words(term.lower()) for term in load_lines(name) if term != term.lower())


def _has_its_capitals(found: str, name: str) -> bool:
    return found != found.lower() or _words(found) not in _capitals(name)


def _words(text: str) -> tuple[str, ...]:
    return tuple(re.findall(r"\w+", text))
