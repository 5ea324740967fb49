"""Dates and ages, in words and in numbers."""

import re

from unembed.auditing.leaks.rules import before, form

_MONTH = (
    r"(?:january|february|march|april|may|june|july|august|september|october|november|december"
    r"|(?:jan|feb|mar|apr|jun|jul|aug|sept?|oct|nov|dec)\b\.?)"
)
_DAY_NUMBER = r"(?:0?[1-9]|[12]\d|3[01])"
_DAY = rf"{_DAY_NUMBER}(?:\s?(?:st|nd|rd|th))?"
_FOUR_DIGITS = r"(?:1[5-9]|20)\d\d"
_YEAR = rf"(?:\s?,?\s{_FOUR_DIGITS})"
_DAY_OF_MONTH = (
    rf"\b{_DAY}\s(?:of\s)?{_MONTH}\b{_YEAR}?|\b{_MONTH}\s{_DAY}\b(?!\s?[.:]\s?\d){_YEAR}?|\b{_MONTH}{_YEAR}\b"
)
_IN_NUMBERS = (
    rf"\b{_FOUR_DIGITS}\s?-\s?(?:0?[1-9]|1[0-2])\s?-\s?{_DAY_NUMBER}\b"
    rf"|(?<![\d./]){_DAY_NUMBER}(?P<mark>\s?[/.]\s?){_DAY_NUMBER}(?P=mark){_FOUR_DIGITS}\b(?![./]\d)"
    r"|(?<![\d./])(?:0[1-9]|[12]\d|3[01])(?P<mark2>\s?[/.]\s?)(?:0[1-9]|1[0-2])(?P=mark2)\d\d\b(?!\s?[./]\s?\d)"
)
# Months that are also words, and what can stand before a date.
_WORD_MONTH = re.compile(r"\b(?:may|march|mar|august|dec|jan)\b")
_BEFORE_DATE = re.compile(
    r"(?:[,:;(]|\b(?:on|by|until|till|since|from|of|before|after|in|to|and|due|expires|born|dated|admitted))\s*$"
)
NUMBERED = re.compile(
    r"\b(?:version|release|section|chapter|firmware|article|figure|table|python|upgrade|update|build|v|§)\s*$"
    r"|\b(?:version|release|firmware|upgrade|update)\b[\w\s.]{0,25}$",
    re.IGNORECASE,
)
"""What stands before numbers with dots that are neither days nor machines: versions, sections."""

_TENS = r"(?:twenty|thirty|forty|fifty|sixty|seventy|eighty|ninety)"
_ONES = r"(?:one|two|three|four|five|six|seven|eight|nine)"
_TEENS = r"(?:ten|eleven|twelve|(?:thir|four|fif|six|seven|eigh|nine)teen)"
_AGE_NUMBER = r"(?:1[01]\d|[1-9]?\d)"
_AGE = rf"(?:{_AGE_NUMBER}|{_TENS}(?:\s?-\s?{_ONES})?|{_ONES}|{_TEENS})"
_NO_RANGE = r"(?!\s(?:or|and|to)\b|\s?[-–]\s?\d)"
_AGES = (
    rf"\baged\s{_AGE}\b{_NO_RANGE}|\b(?:at\s)?(?:the\s)?age\s(?:of\s)?{_AGE}\b{_NO_RANGE}|\bage\s?:\s?{_AGE}\b"
    rf"|\b{_AGE}\s?-?\s?years?\s?-?\s?olds?\b(?!\s(?:or|and)\s(?:over|older|up))|\b{_AGE}\s?(?:y\s?/\s?o|yo)\b"
    r"|\bin\s(?:his|her|their|my)\s(?:early\s|mid\s?-?\s?|late\s)?(?:teens|twenties|(?:thir|for|fif|six|seven|eigh|nine)ties)\b"
    r"|\b(?:i\s?['’]\s?m|i\sam|(?:he|she)\s(?:is|was)|(?:he|she|i)\s?['’]\s?s|turned|turns|turning)"
    rf"\s(?P<item>{_AGE_NUMBER})\b(?=\s?(?:[.,;!?)]|$)|\s(?:and|when|now|this|next|last|today|but|with|in)\b)"
)
# What can have an age and is nobody.
_THING = (
    r"(?:whisk(?:e)?y|scotch|wine|port|rum|cheese|car|truck|house|building|bridge|tree|company|firm|laptop|computer|phone"
    r"|machine|system|software|roof|boiler|bottle|tradition|law|contract|case|dispute|record|battery|church|city|town)"
)
_THEN_A_THING = re.compile(rf"\s{_THING}", re.IGNORECASE)
_A_THING_IS = re.compile(rf"\b{_THING}\s(?:is|was|are|were)\s(?:about\s|over\s|nearly\s)?$", re.IGNORECASE)


def _is_day(match: re.Match[str]) -> bool:
    """Whether "may 2" is a day: a month that is also a word needs a capital, a year, or a word such as "on" before."""
    text = match[0]
    clear = (
        re.search(r"\d{4}", text) or not _WORD_MONTH.search(text) or re.match(r"\d+\s?(?:st|nd|rd|th)|\d+\sof", text)
    )
    return bool(clear) or bool(_BEFORE_DATE.search(before(match).lower()))


def _is_date_in_numbers(match: re.Match[str]) -> bool:
    first, second, *_ = (int(number) for number in re.findall(r"\d+", match[0]))
    return min(first, second) <= 12 and not NUMBERED.search(before(match))


def _is_persons(match: re.Match[str]) -> bool:
    after = match.string[match.end() : match.end() + 20]
    return not (_THEN_A_THING.match(after) or _A_THING_IS.search(before(match)))


DATES = (form("dates", _DAY_OF_MONTH, _is_day), form("dates", _IN_NUMBERS, _is_date_in_numbers))
AGES = (form("ages", _AGES, _is_persons),)
