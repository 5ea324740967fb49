"""Street addresses: a number and a street, as some countries write them, and post boxes."""

import re

from unembed.auditing.leaks.rules import form

_STREET = r"(?:street|road|avenue|ave|lane|boulevard|blvd|terrace|crescent|highway|hwy|parkway|rd)"
# These are also everyday words.
_LOOSE_STREET = r"(?:st|drive|dr|court|ct|close|way|place|pl|square|sq|gardens|row|hill)"
_NO_NAME = (
    r"(?!(?:minutes?|hours?|miles?|km|days?|years?|weeks?|months?|people|persons|percent|more|other|of|to|in|the|and|or|on"
    r"|different|new|lost|blocks?|lanes?|ways?|places|times)\b)"
)
_NAME = rf"(?:{_NO_NAME}[^\W\d_][\w'’]*\.?\s){{1,3}}"
_STREETS = (
    rf"\b\d{{1,5}}\s?[a-z]?\s{_NAME}(?:{_STREET}\b\.?(?!\s(?:traffic|works))|(?P<loose>{_LOOSE_STREET})\b)"
    r"|\b[^\W\d_]+(?:stra(?:ß|ss)e|str\.|gasse|platz|allee|straat|laan|gatan|weg)\s\d{1,4}\s?[a-z]?\b"
    r"|\b\d{1,4}(?:\s?bis)?,?\s(?:rue|avenue|boulevard|place|quai|allée|chemin)\s(?:(?:de|du|des|la|le|l['’])\s?)*[^\W\d_]+"
    r"|\b(?:via|viale|piazza|corso|calle|avenida|paseo|rua|plaza)\s(?:(?:de|del|della|la|los|do|da)\s)*[^\W\d_]+,?\s\d{1,4}\b"
    r"|\bp\s?\.?\s?o\s?\.?\s?box\s\d{1,6}\b"
)


def _is_street(match: re.Match[str]) -> bool:
    """Whether "place" or "way" ends a street: its words have capitals, or nothing in the text has."""
    if not match["loose"]:
        return True
    name = match[0].split()[1:]
    return all(word[:1].isupper() for word in name) or (match.string.islower() and len(name) > 1)


STREETS = (form("street addresses", _STREETS, _is_street),)
