"""Passwords, keys, tokens and codes: by a form of their own, or by the word before them."""

import re

from unembed.auditing.leaks.rules import form

# The keys of large services begin with letters of their own.
_KEYS = (
    r"\b(?:AKIA|ASIA)[0-9A-Z]{16}\b|\bgh[pousr]_\w{20,}|\bxox[abprs]\s?-\s?[\w-]{10,}"
    r"|\bsk\s?[-_]\s?(?:(?:proj|live|test)\s?[-_]\s?)?[\w-]{16,}|\bAIza[\w-]{30,}"
    r"|\beyJ[\w-]{8,}\s?\.\s?[\w-]{8,}\s?\.\s?[\w-]+|-----BEGIN [A-Z ]*PRIVATE KEY-----"
)
_VALUE = r"""["'“]?\s?(?P<item>[^\s"'”]+(?:\s?[-_!@#$%&*+]\s?[^\s"'”.,;]+)*)"""
_PASSWORD = rf"\b(?:pass\s?(?:word|code|phrase)|passwd|pwd)\b(?:\s*(?:(?:is|was|are|to)\s|[:=])\s*|\s){_VALUE}"
_SECRET = (
    r"\b(?:(?:client\s?|api\s?)?secret(?:[\s_-]?key)?|(?:api|access|auth|secret)[\s_-]?(?:key|token)|token|bearer)\b"
    rf"\s*[:=]?\s*{_VALUE}"
)
_QUOTED = r"""\b(?:pass\s?(?:word|code|phrase)|secret|pin)\b(?:\s(?:is|was))?[\s:=]*["“](?P<item>[^"”]{4,60})["”]"""
_PIN = (
    r"\b(?:pin(?:\s(?:code|number))?|(?:door|access|security|verification|entry|gate|alarm|lock|one\s?-\s?time)\scode)\b"
    r"\s*(?:is|was|:|=)?\s*(?P<item>\d{4,8})\b"
)
_IN_ADDRESS = r":\s?/\s?/\s?[^\s:/@]+\s?:\s?(?P<item>[^\s@/]+)\s?@"
_SHORTEST, _SHORTEST_KEY = 4, 8


def _is_password(match: re.Match[str]) -> bool:
    """Whether what follows "password" is one: the words of a language have neither digits nor symbols."""
    value = match["item"].rstrip(".,;:!?)")
    has_digit, has_letter = bool(re.search(r"\d", value)), bool(re.search(r"[a-z]", value, re.IGNORECASE))
    has_symbol = bool(re.search(r"[!@#$%&*+_=]", value))
    return len(value) >= _SHORTEST and (has_symbol or (has_digit and (has_letter or len(value) > _SHORTEST + 1)))


def _is_key(match: re.Match[str]) -> bool:
    return _is_password(match) and len(match["item"]) >= _SHORTEST_KEY


CREDENTIALS = (
    form("credentials", _KEYS),
    form("credentials", _IN_ADDRESS),
    form("credentials", _QUOTED),
    form("credentials", _PASSWORD, _is_password),
    form("credentials", _SECRET, _is_key),
    form("credentials", _PIN),
)
