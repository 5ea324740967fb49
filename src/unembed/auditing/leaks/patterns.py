"""All forms, in the order in which they are looked for; and the forms of numbers that machines and banks use."""

import ipaddress
import re
from collections.abc import Iterator

from unembed.auditing.leaks.checksums import iban_end, is_card, is_isbn
from unembed.auditing.leaks.credentials import CREDENTIALS
from unembed.auditing.leaks.dates import AGES, DATES, NUMBERED
from unembed.auditing.leaks.phones import PHONE, is_phone
from unembed.auditing.leaks.rules import Rule, Span, apply_rules, before, form
from unembed.auditing.leaks.streets import STREETS

_EMAIL = r"[\w+-]+(?:\s?[._+-]\s?[\w+-]+)*\s?@\s?[\w-]+(?:\s?-\s?[\w-]+)*(?:\s?[.]\s?[a-z][\w-]*)+"
_IP_4 = r"\b\d{1,3}(?:\s?\.\s?\d{1,3}){3}\b(?!\s?\.\s?\d)"
_IP_6 = r"(?<![\w:])[0-9a-f]{0,4}(?:\s?:\s?[0-9a-f]{0,4}){3,7}(?![\w:])"
_GAP = r"\s?-?\s?"
# In one piece, in fours, or as American Express writes them.
_CARD = (
    rf"(?<![\w+-])(?:\d{{13,19}}|\d{{4}}(?:{_GAP}\d{{4}}){{3}}(?:{_GAP}\d{{3}})?|\d{{4}}{_GAP}\d{{6}}{_GAP}\d{{4,5}})"
    r"(?![\w-]|\s\d)"
)
_ISBN = r"(?<![\w-])\d(?:[\s-]{0,3}\d){8,11}(?:[\s-]{0,3}[\dx])(?![\w-])"
_SOCIAL_SECURITY = r"(?<![\w-])(?!000|666|9)\d{3}\s?-\s?(?!00)\d\d\s?-\s?(?!0000)\d{4}(?![\w-])"
_NUMBER = r"\d+(?:\s?[.,]\s?\d+)*"
_SCALE = r"(?:\s?(?:thousand|million|billion|k|bn|m)\b)?"
_MONEY = (
    rf"[$€£¥]\s?{_NUMBER}{_SCALE}"
    rf"|\b{_NUMBER}{_SCALE}\s?(?:[$€£¥]|(?:dollars?|euros?|pounds|cents|yen|rupees|francs|usd|eur|gbp|chf)\b)"
)
_WEIGHT = re.compile(r"\b(?:weigh\w*|lost|gain\w*|shed|put\son)\b[\w\s]{0,12}$", re.IGNORECASE)


def find_patterns(text: str) -> tuple[list[Span], str]:
    """Return what has a form of its own, and the text with spaces instead of it."""
    return apply_rules(_RULES, text)


def _accounts(text: str) -> Iterator[tuple[int, int]]:
    for match in re.finditer(r"\b[a-z]{2}\s?\d\d", text, re.IGNORECASE):
        if (end := iban_end(text, match.start())) is not None:
            yield match.start(), end


def _is_ip(match: re.Match[str]) -> bool:
    try:
        ipaddress.ip_address(re.sub(r"\s", "", match[0]))
    except ValueError:
        return False
    return not NUMBERED.search(before(match))


def _is_book(match: re.Match[str]) -> bool:
    return bool(re.search(r"\bisbn", before(match), re.IGNORECASE)) and is_isbn(match[0])


def _is_announced(match: re.Match[str]) -> bool:
    return bool(re.search(r"\b(?:social\ssecurity|ssn)\b", match.string, re.IGNORECASE))


def _is_money(match: re.Match[str]) -> bool:
    return not (match[0].lower().endswith("pounds") and _WEIGHT.search(before(match)))


_RULES = (
    *CREDENTIALS,
    form("e-mail addresses", _EMAIL),
    form("IP addresses", _IP_4, _is_ip),
    form("IP addresses", _IP_6, _is_ip),
    Rule("bank accounts", _accounts),
    form("card numbers", _CARD, lambda match: is_card(match[0])),
    form(None, _ISBN, _is_book),
    form("social security numbers", _SOCIAL_SECURITY),
    form("social security numbers", _SOCIAL_SECURITY.replace(r"\s?-\s?", r"\s?"), _is_announced),
    *DATES,
    *AGES,
    form("amounts of money", _MONEY, _is_money),
    *STREETS,
    form("phone numbers", PHONE, lambda match: is_phone(match[0], before(match))),
)
