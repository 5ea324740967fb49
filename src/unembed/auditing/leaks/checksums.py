"""Check digits: whether a number can be a card, a bank account or a book."""

import re

# ISO 13616: how many characters the account numbers of each country have.
_IBAN_LENGTHS = {
    "AD": 24, "AE": 23, "AL": 28, "AT": 20, "AZ": 28, "BA": 20, "BE": 16, "BG": 22, "BH": 22, "BR": 29, "BY": 28,
    "CH": 21, "CR": 22, "CY": 28, "CZ": 24, "DE": 22, "DK": 18, "DO": 28, "EE": 20, "EG": 29, "ES": 24, "FI": 18,
    "FO": 18, "FR": 27, "GB": 22, "GE": 22, "GI": 23, "GL": 18, "GR": 27, "GT": 28, "HR": 21, "HU": 28, "IE": 22,
    "IL": 23, "IQ": 23, "IS": 26, "IT": 27, "JO": 30, "KW": 30, "KZ": 20, "LB": 28, "LI": 21, "LT": 20, "LU": 20,
    "LV": 21, "MC": 27, "MD": 24, "ME": 22, "MK": 19, "MR": 27, "MT": 31, "MU": 30, "NL": 18, "NO": 15, "PK": 24,
    "PL": 28, "PS": 29, "PT": 25, "QA": 29, "RO": 24, "RS": 22, "SA": 24, "SE": 24, "SI": 19, "SK": 24, "SM": 27,
    "TN": 24, "TR": 26, "UA": 29, "VA": 22, "XK": 20,
}  # fmt: skip
_CARD_LENGTHS = range(13, 20)
# The first digits of the large networks' cards.
_CARD_PREFIX = re.compile(r"4|5[0-9]|2[2-7]|3[0-9]|6")


def iban_end(text: str, start: int) -> int | None:
    """Return where the account number ends that begins at ``start``; None if there is no valid one."""
    length = _IBAN_LENGTHS.get(text[start : start + 2].upper())
    compact, end = "", start
    while length and len(compact) < length and end < len(text):
        if text[end].isascii() and text[end].isalnum():
            compact += text[end].upper()
        elif text[end] != " " or text[end - 1] == " ":
            return None
        end += 1
    if len(compact) != length or (end < len(text) and text[end].isalnum()):
        return None
    rotated = compact[4:] + compact[:4]
    return end if int("".join(str(int(character, 36)) for character in rotated)) % 97 == 1 else None


def is_card(text: str) -> bool:
    """Whether the digits of a text are those of a payment card: its network, its length, its check digit (Luhn)."""
    digits = [int(digit) for digit in re.findall(r"\d", text)]
    if len(digits) not in _CARD_LENGTHS or not _CARD_PREFIX.match("".join(map(str, digits))):
        return False
    doubled = [2 * digit - 9 if digit > 4 else 2 * digit for digit in digits[-2::-2]]
    return (sum(digits[-1::-2]) + sum(doubled)) % 10 == 0


def is_isbn(text: str) -> bool:
    """Whether the digits of a text are a book's number."""
    digits = re.findall(r"\d|x", text.lower())
    if len(digits) == 13 and "x" not in digits:
        return sum(int(digit) * (1, 3)[index % 2] for index, digit in enumerate(digits)) % 10 == 0
    if len(digits) == 10 and "x" not in digits[:9]:
        return sum((10 if digit == "x" else int(digit)) * (10 - index) for index, digit in enumerate(digits)) % 11 == 0
    return False
