"""Finds what a text says about people: names, addresses, numbers, dates, places, health. Rules and small word lists.

Made to count, for a report, what comes back from vectors; not to find every name in a document. Works on texts as
people write them and as a tokenizer writes them back: lower case, with spaces around punctuation.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from typing import Literal, get_args

from unembed.audit.lists import load_list

Kind = Literal["names", "e-mail addresses", "phone numbers", "amounts of money", "dates", "places", "medical terms"]
KINDS: tuple[Kind, ...] = get_args(Kind)

_RUN = re.compile(r"\w+")
_NUMBER = r"\d+(?:\s?[.,]\s?\d+)*"
_SCALE = r"(?:\s?(?:thousand|million|billion|k|bn)\b)?"
_MONTH = (
    r"(?:january|february|march|april|may|june|july|august|september|october|november|december"
    r"|(?:jan|feb|mar|apr|jun|jul|aug|sept?|oct|nov|dec)\.?)"
)
_DAY = r"\d{1,2}(?:\s?(?:st|nd|rd|th))?"
_YEAR = r"(?:\s?,?\s\d{4})"
_PATTERNS: dict[Kind, str] = {
    "e-mail addresses": r"[\w+-]+(?:\s?[.]\s?[\w+-]+)*\s?@\s?[\w-]+(?:\s?[.]\s?[a-z][\w-]*)+",
    "dates": (
        rf"\b{_DAY}\s(?:of\s)?{_MONTH}\b{_YEAR}?|\b{_MONTH}\s{_DAY}\b(?!\s?[.:]\s?\d){_YEAR}?|\b{_MONTH}{_YEAR}\b"
        r"|\b\d{4}\s?-\s?\d{1,2}\s?-\s?\d{1,2}\b|\b\d{1,2}\s?[/.]\s?\d{1,2}\s?[/.]\s?(?:\d{4}|\d{2})\b"
    ),
    "amounts of money": (
        rf"[$€£¥]\s?{_NUMBER}{_SCALE}|\b{_NUMBER}{_SCALE}\s?(?:[$€£¥]|(?:dollars?|euros?|pounds|cents|yen|rupees|francs"
        r"|usd|eur|gbp|chf)\b)"
    ),
    "phone numbers": r"(?<![\w.,$€£])(?:\+\s?|\(\s?)?\d[\d\s().\-/]{5,20}\d(?!\w)",
}
_TITLE = r"(?:mr|mrs|ms|dr|prof)\s?\.?\s+[a-z]+"
_YEAR_ALONE = re.compile(r"(?:1[5-9]|20)\d\d")


@dataclass(frozen=True)
class Leak:
    """Something that a text says about somebody."""

    kind: Kind
    text: str

    @property
    def runs(self) -> tuple[str, ...]:
        """Its words and numbers, without what stands between them."""
        return _runs(self.text)


def find_leaks(text: str) -> list[Leak]:
    """Return what a text gives away, each thing once."""
    leaks: dict[tuple[Kind, tuple[str, ...]], Leak] = {}
    left = text
    for kind, pattern in _PATTERNS.items():
        for match in re.finditer(pattern, left, re.IGNORECASE):
            if kind == "phone numbers" and not _is_phone(match[0]):
                continue
            _add(leaks, kind, match[0])
            # What is a date is no phone number.
            left = left[: match.start()] + " " * len(match[0]) + left[match.end() :]
    for match in re.finditer(_TITLE, left, re.IGNORECASE):
        _add(leaks, "names", match[0])
    for match in _names().finditer(left):
        _add(leaks, "names", match[0])
    for match in _RUN.finditer(left):
        if match[0].lower() in load_list("places"):
            _add(leaks, "places", match[0])
        if match[0].lower() in load_list("medical"):
            _add(leaks, "medical terms", match[0])
    return list(leaks.values())


def gives_back(text: str, leaks: Sequence[Leak]) -> list[Leak]:
    """Return those of a reference's leaks that a recovered text holds, word for word and number for number."""
    runs = _runs(text)
    return [
        leak
        for leak in leaks
        if any(runs[start : start + len(leak.runs)] == leak.runs for start in range(len(runs) - len(leak.runs) + 1))
    ]


def _add(leaks: dict[tuple[Kind, tuple[str, ...]], Leak], kind: Kind, text: str) -> None:
    leak = Leak(kind, text.strip())
    if leak.runs:
        leaks.setdefault((kind, leak.runs), leak)


def _is_phone(text: str) -> bool:
    groups = re.findall(r"\d+", text)
    digits = sum(map(len, groups))
    grouped = len(groups) > 1 or text.startswith("+") or digits >= 9
    return 7 <= digits <= 15 and grouped and not all(_YEAR_ALONE.fullmatch(group) for group in groups)


@cache
def _names() -> re.Pattern[str]:
    """A first name in any case, with the capitalised words behind it."""
    first = "|".join(sorted(load_list("first-names")))
    return re.compile(rf"\b(?i:{first})\b(?:\s(?:[A-Z]\.\s)?[A-Z][\w'-]+)*")


def _runs(text: str) -> tuple[str, ...]:
    return tuple(_RUN.findall(text.lower()))
