"""Strings as tokenizers want them. Knows nothing of tokens."""


def well_formed(text: str) -> str:
    """Return the text with a ``?`` for each lone surrogate: half a character, which no tokenizer accepts."""
    return text if text.isascii() else text.encode(errors="replace").decode()
