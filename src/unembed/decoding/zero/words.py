"""The words that texts are made of, with their vectors by the local encoder. Knows nothing of language models."""

import hashlib
import json
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np
from tokenizers import Tokenizer

from unembed.canvas.marks import SubwordMarks
from unembed.encoders import Encoder
from unembed.encoders.packages import unpacked
from unembed.measures.vectors import normalise

Words = tuple[str, ...]
"""A text, word by word; a punctuation mark is a word."""
ATTACHED = (".", "?")
"""Marks that texts may hold, without a space before them. Others hardly move a vector, and break texts into lists."""
_VECTORS = "vectors.npy"
_BATCH = 128


@dataclass(frozen=True)
class WordBank:
    """Words and marks, each a whole token of the canvas's tokenizer."""

    words: list[str]
    ids: np.ndarray
    """(n,) their tokens."""
    vectors: np.ndarray
    """(n, d) of each word as a text of its own, normalised."""

    @cached_property
    def index(self) -> dict[str, int]:
        """Where each word is."""
        return {word: place for place, word in enumerate(self.words)}

    @cached_property
    def mean(self) -> np.ndarray:
        """The mean vector."""
        mean: np.ndarray = self.vectors.mean(0)
        return mean

    @classmethod
    def of(cls, tokenizer: Tokenizer, encoder: Encoder) -> "WordBank":
        """Take all words of a tokenizer and embed them: half a minute for 20,000, so they are kept in the cache."""
        tokens = _whole_words(tokenizer)
        words = list(tokens)
        facts = json.dumps([encoder.description.model_dump(mode="json"), words])
        name = f"words-{hashlib.sha256(facts.encode()).hexdigest()[:16]}"
        folder = unpacked(name, lambda folder: _embed(words, encoder, folder))
        return cls(words, np.array(list(tokens.values())), np.load(folder / _VECTORS, allow_pickle=False))


def write(words: Sequence[str]) -> str:
    """Return words as a text."""
    text = ""
    for word in words:
        text += word if word in ATTACHED or not text else f" {word}"
    return text


def _embed(words: list[str], encoder: Encoder, folder: Path) -> None:
    np.save(folder / _VECTORS, normalise(encoder.encode(words, batch_size=_BATCH)), allow_pickle=False)


def _whole_words(tokenizer: Tokenizer) -> dict[str, int]:
    """Return the lower-case words and marks that are tokens, with their ids, in the vocabulary's order."""
    marks = SubwordMarks.of(tokenizer)
    found: dict[str, int] = {}
    for piece, token in sorted(tokenizer.get_vocab(with_added_tokens=False).items(), key=lambda pair: pair[1]):
        word = marks.bare(piece)
        whole = word in ATTACHED or not marks.continues(piece)
        if whole and (word in ATTACHED or (_is_word(word) and word == word.lower())):
            found.setdefault(word, token)
    return found


def _is_word(word: str) -> bool:
    # Vocabularies hold single letters of many scripts; of these only the Latin ones are words.
    return word.isalnum() and (len(word) > 1 or word.isascii())
