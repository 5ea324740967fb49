"""Which groups of digits are phone numbers. Takes the extra's ``phonenumbers`` where it is installed."""

import re
from functools import cache
from importlib.util import find_spec

PHONE = r"(?<![\w.,$€£-])(?:\+\s?|\(\s?)?\d[\d\s().\-/]{5,22}\d(?!\w|\s?[.,]\s?\d)"
"""Whatever may be one."""

# Words before a number that say what it is.
_ANNOUNCED = re.compile(
    r"\b(?:call(?:\sback)?|phone|tel|telephone|mobile|cell|fax|ring|dial|text|sms|whatsapp|hotline|reach\s\w+(?:\s\w+)?"
    r"|contact)\b[\w\s.:,']{0,20}$",
    re.IGNORECASE,
)
_OTHERWISE = re.compile(
    r"\b(?:order|invoice|isbn|ticket|case|ref|reference|serial|tracking|part|model|policy|account|batch|lot|item"
    r"|article|page|room|code|version|score|meter|number)\b[\w\s.:#']{0,12}$",
    re.IGNORECASE,
)
_YEAR = re.compile(r"(?:1[5-9]|20)\d\d")
_AMERICAN = re.compile(r"(?:\+?1[\s.-]*)?\(?\s?[2-9]\d\d\s?[\s).-]+\s?[2-9]\d\d\s?[\s.-]\s?\d{4}")
_LOCAL = re.compile(r"[2-9]\d\d\s?-\s?\d{4}")


def is_phone(text: str, before: str) -> bool:
    """Whether a text of digits is a phone number, given what stands before it.

    With a plus or a form that only phone numbers have, it needs no more. A plain group of digits needs a word such as
    "call" before it.
    """
    groups = re.findall(r"\d+", text)
    digits = "".join(groups)
    if not 7 <= len(digits) <= 15 or all(_YEAR.fullmatch(group) for group in groups):
        return False
    if text.startswith("+"):
        return _is_possible(digits)
    if _ANNOUNCED.search(before):
        return len(groups) > 1 or len(digits) >= 9
    if _OTHERWISE.search(before):
        return False
    national = digits.startswith("0") and not digits.startswith("00") and len(groups) > 1 and 9 <= len(digits) <= 12
    return national or bool(_AMERICAN.fullmatch(text) or _LOCAL.fullmatch(text))


def _is_possible(digits: str) -> bool:
    """Whether a country has such numbers; without the package, whether there are enough digits."""
    if not _has_phonenumbers():
        return len(digits) >= 8
    import phonenumbers

    try:
        return bool(phonenumbers.is_possible_number(phonenumbers.parse(f"+{digits}")))
    except phonenumbers.NumberParseException:
        return False


@cache
def _has_phonenumbers() -> bool:
    return find_spec("phonenumbers") is not None
