"""Measures on content words: the words that say what a text is about, compared by their stems. Knows no tokens.

Function words ("the", "with") come back from almost any vector and tell nothing, so they do not count here. Chinese and
Japanese have no spaces between words: there a character counts as a word, a run of katakana too, and hiragana, which is
mostly grammar, does not count.
"""

import re
from collections.abc import Iterable, Iterator
from functools import cache
from importlib.resources import files

from unembed.scripts import HAN, HIRAGANA, KATAKANA

PASSAGE_WORDS = 24
"""Words of a passage: about as many as an inverter of 32 tokens can write."""
READABLE_FROM = 0.5
"""A text counts as read back when a passage of it has this share of its content words in the recovered text."""
_EAST_ASIAN = HAN + HIRAGANA + KATAKANA
_WORD = re.compile(rf"[{HAN}]|[{KATAKANA}]+|[{HIRAGANA}]+|(?:(?![{_EAST_ASIAN}])[^\W_])+")
_GRAMMAR = re.compile(rf"[{HIRAGANA}]+|[的了在不和是我你他她它这那们也就都而及与着或之其被把]")
_VOWEL = re.compile(r"[aeiouy]")
_SHORTEST = 3
# What is cut off, in this order, and what takes its place.
_PLURALS = (("sses", "ss"), ("ies", "y"), ("ss", "ss"), ("us", "us"), ("is", "is"), ("s", ""))
_FORMS = ("ingly", "edly", "ing", "ed", "ly")


def content_words(text: str) -> list[str]:
    """Return the stems of a text's content words, in order; of all its words if it has no content words."""
    words = _WORD.findall(text.lower())
    return [stem(word) for word in words if _says_something(word)] or words


def spoken_words(text: str) -> list[str]:
    """Return a text's content words as they are written, in order; all its words if it has no content words."""
    words = _WORD.findall(text)
    return [word for word in words if _says_something(word.lower())] or words


def all_words(text: str) -> list[str]:
    """Return the words of a text as they are written."""
    return _WORD.findall(text)


def content_recall(recovered: str, reference: str) -> float:
    """Share of the reference's different content words that the recovered text has."""
    return _share(set(content_words(reference)), set(content_words(recovered)))


def content_precision(recovered: str, reference: str) -> float:
    """Share of the recovered text's different content words that the reference has."""
    return _share(set(content_words(recovered)), set(content_words(reference)))


def passage_recall(recovered: str, reference: str) -> float:
    """Share of its content words that come back from the best passage of the reference.

    A passage is the whole text, or ``PASSAGE_WORDS`` of its words in a row if it is longer.
    """
    return best_passage(recovered, reference)[1]


def best_passage(recovered: str, reference: str) -> tuple[str, float]:
    """Return the passage of the reference that came back best, and the share of its content words that did."""
    ours = set(content_words(recovered))
    return max(
        ((passage, _share(set(content_words(passage)), ours)) for passage in _passages(reference)),
        key=lambda found: found[1],
    )


def readable(recovered: str, reference: str) -> float:
    """1 when at least half of the content words of a passage came back, else 0."""
    return float(passage_recall(recovered, reference) >= READABLE_FROM)


def stem(word: str) -> str:
    """Cut the ending of an English word, so that its forms are equal: invoice, invoices, invoiced, invoicing."""
    word = word.lower()
    for ending, kept in _PLURALS:
        if word.endswith(ending) and len(word) - len(ending) >= _SHORTEST:
            word = word[: len(word) - len(ending)] + kept
            break
    for ending in _FORMS:
        rest = word.removesuffix(ending)
        if rest != word and len(rest) >= _SHORTEST and _VOWEL.search(rest):
            double = rest[-1] == rest[-2] and rest[-1] not in "lsz"
            word = rest[:-1] if double else rest
            break
    if word.endswith("e") and len(word) > _SHORTEST:
        word = word[:-1]
    return f"{word[:-1]}i" if word.endswith("y") and len(word) > _SHORTEST else word


@cache
def function_words() -> frozenset[str]:
    """Return English words of three letters or more that say nothing about a text's subject."""
    return frozenset(files(__package__).joinpath("function-words.txt").read_text(encoding="utf-8").split())


def is_grammar(word: str) -> bool:
    """Whether a word is Chinese or Japanese grammar: hiragana alone, and some characters."""
    return bool(_GRAMMAR.fullmatch(word))


def _says_something(word: str) -> bool:
    """Return whether a word counts; short words do if they hold a digit or are not of the Latin script."""
    short = len(word) < (2 if any(letter.isdigit() for letter in word) else _SHORTEST)
    if word.isascii():
        return not short and word not in function_words()
    return not is_grammar(word)


def _passages(text: str) -> Iterator[str]:
    """Yield the passages of a text, each beginning a word later than the one before."""
    words = list(_WORD.finditer(text))
    if len(words) <= PASSAGE_WORDS:
        yield text
        return
    for first in range(len(words) - PASSAGE_WORDS + 1):
        yield text[words[first].start() : words[first + PASSAGE_WORDS - 1].end()]


def _share(wanted: Iterable[str], there: set[str]) -> float:
    wanted = set(wanted)
    return len(wanted & there) / max(1, len(wanted))
