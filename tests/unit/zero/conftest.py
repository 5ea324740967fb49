"""Parts of a search without training: two related encoders without weights, and a language model that has counted."""

import math
from collections import Counter

import numpy as np
import pytest

from unembed.decoding.zero.words import WordBank

TEXTS = [
    "the cat sleeps on the warm mat",
    "the dog runs in the park",
    "a bird sings in the tree",
    "the old man drinks tea",
]


class CountingReader:
    """Knows which word follows which in a few texts."""

    def __init__(self, words):
        self.words = list(words)
        self.pairs = Counter(pair for text in TEXTS for pair in zip(["", *text.split()], text.split(), strict=False))

    def chance(self, before, word):
        return math.log((self.pairs[before, word] + 0.01) / (self.pairs.total() + 0.01))

    def likely(self, texts):
        return [
            np.array([[self.chance(before, word) for word in self.words] for before in ["", *text]]) for text in texts
        ]

    def score(self, texts):
        return np.array([sum(map(self.chance, ["", *text], text)) for text in texts])


class CountingLanguage:
    """A language model without weights; remembers the keywords that it was told."""

    def __init__(self):
        self.keywords = []
        self.questions = []

    def about(self, keywords, words, *, question=False):
        self.keywords.append(list(keywords))
        self.questions.append(question)
        return CountingReader(words)


class TurnedEncoder:
    """Gives another encoder's vectors, turned: a linear map leads from one to the other."""

    def __init__(self, encoder):
        self.encoder = encoder
        self.tokenizer = encoder.tokenizer
        self.description = encoder.description.model_copy(update={"name": "turned"})
        self.turn = np.linalg.qr(np.random.default_rng(1).normal(size=(16, 16)))[0]
        self.seen = []

    def encode(self, sentences, *, batch_size=32, show_progress_bar=False):
        self.seen += sentences
        return (self.encoder.encode(sentences) @ self.turn).astype(np.float32)


@pytest.fixture(autouse=True)
def _own_cache(tmp_path, monkeypatch):
    monkeypatch.setenv("UNEMBED_CACHE", str(tmp_path / "cache"))


@pytest.fixture
def language():
    return CountingLanguage()


@pytest.fixture
def turned(build_fake_encoder):
    """The encoder under attack."""
    return TurnedEncoder(build_fake_encoder())


@pytest.fixture
def bank(fake_encoder):
    return WordBank.of(fake_encoder.tokenizer, fake_encoder)
