"""Strings as tokenizers and terminals want them. Knows nothing of tokens."""

import re

# What a terminal obeys instead of printing.
_ESCAPES = re.compile(
    r"\x1b\][^\x07\x1b]*(?:\x07|\x1b\\)?"  # a title or a link, with its text
    r"|(?:\x1b\[|\x9b)[0-?]*[ -/]*[@-~]"  # colours and movements
    r"|\x1b[@-Z\\-_]?"
    r"|[\x00-\x1f\x7f-\x9f]"  # control characters
)
# Characters that change the order or the look of what stands around them.
_INVISIBLE = re.compile("[\u200b-\u200f\u2028-\u202e\u2066-\u2069\ufeff]")


def well_formed(text: str) -> str:
    """Return the text with a ``?`` for each lone surrogate: half a character, which no tokenizer accepts."""
    return text if text.isascii() else text.encode(errors="replace").decode()


def printable(text: str) -> str:
    """Return the text on one line, without what a terminal would obey: escape codes and control characters."""
    return well_formed(_INVISIBLE.sub("", _ESCAPES.sub("", text)))
