"""Which of a text's content words came back, word by word: as they were, nearly, or not at all. Knows no tokens."""

import unicodedata
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

from unembed.measures.content import spoken_words, stem

Fate = Literal["same", "near", "lost"]
"""``same``: the very word is there. ``near``: another form of it, or a word that shares most of its letters."""
# A shared beginning counts from this many letters, and if it is this share of the shorter word.
_LETTERS, _SHARE = 5, 2 / 3


@dataclass(frozen=True)
class WordFate:
    """A content word, and whether it came back."""

    word: str
    fate: Fate


def fates(reference: str, recovered: Iterable[str]) -> list[WordFate]:
    """Return the different content words of a reference, in order, each with its fate among recovered words."""
    found = {_plain(word) for word in recovered}
    different = {_plain(word): word for word in reversed(spoken_words(reference))}
    return [WordFate(word, fate_of(plain, found)) for plain, word in reversed(different.items())]


def fate_of(word: str, found: Iterable[str]) -> Fate:
    """Return whether a word is among some words."""
    plain = _plain(word)
    others = {_plain(other) for other in found}
    if plain in others:
        return "same"
    return "near" if any(are_near(plain, other) for other in others) else "lost"


def are_near(one: str, other: str) -> bool:
    """Whether two words have the same stem, or share most of their letters from the beginning."""
    if stem(one) == stem(other):
        return True
    shared = next((i for i, (a, b) in enumerate(zip(one, other, strict=False)) if a != b), min(len(one), len(other)))
    return shared >= max(_LETTERS, _SHARE * min(len(one), len(other)))


def _plain(word: str) -> str:
    """Return a word in lower case and without accents, as most tokenizers write it."""
    letters = unicodedata.normalize("NFD", word.lower())
    return "".join(letter for letter in letters if not unicodedata.combining(letter))
