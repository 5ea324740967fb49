"""Writing systems: which letters make a word, and which scripts write words without spaces. Knows no language."""

import re

HAN = "々〆\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff"
HIRAGANA = "\u3041-\u309f"
KATAKANA = "\u30a1-\u30fa\u30fc-\u30ff"
_THAI_LAO_BURMESE_KHMER = "\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff"
_UNSPACED = HAN + HIRAGANA + KATAKANA + _THAI_LAO_BURMESE_KHMER
# Signs above and below letters, where they are characters of their own: Latin, Hebrew, Arabic, Devanagari.
_SIGNS = "\u0300-\u036f\u0591-\u05c7\u0610-\u061a\u064b-\u065f\u0670\u0900-\u0903\u093a-\u094f"
_LETTER = rf"(?![{_UNSPACED}])[^\W\d_]"

WORD = re.compile(rf"{_LETTER}(?:{_LETTER}|[{_SIGNS}])*")
"""A word of a script that puts spaces between words."""
UNSPACED = re.compile(rf"[{_UNSPACED}]+")
"""Letters of scripts that do not: where a word ends, only a dictionary can tell."""
_HAS_HAN = re.compile(rf"[{HAN}]")


def shortest_word(word: str) -> int:
    """Return how many letters a word of the same script needs, as a rule, to say something by itself.

    A Chinese character does by itself; two syllables of Korean or two letters of Arabic do.
    """
    if _HAS_HAN.search(word):
        return 1
    return 3 if word.lower() != word.upper() else 2
