"""Strings as tokenizers and terminals want them. Knows nothing of tokens."""


def well_formed(text: str) -> str:
    """Return the text with a ``?`` for each lone surrogate: half a character, which no tokenizer accepts."""
    return text if text.isascii() else text.encode(errors="replace").decode()


def printable(text: str) -> str:
    """Return the text with escapes for what a terminal would obey instead of show, such as colours and line breaks."""
    if text.isprintable():
        return text
    return "".join(letter if letter.isprintable() else ascii(letter)[1:-1] for letter in text)


def printable_lines(text: str) -> str:
    """Return the text as :func:`printable` does, line by line."""
    return "\n".join(map(printable, text.split("\n")))
