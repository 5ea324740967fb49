"""Texts of the search as steps on canvases, as every other strategy gives them."""

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

import numpy as np
import torch
from tokenizers import Tokenizer

from unembed.canvas import CanvasVocabulary
from unembed.config import ZeroConfig
from unembed.corpus import bundled_texts
from unembed.decoding.step import Step
from unembed.decoding.zero.language import LanguageModel
from unembed.decoding.zero.search import Hypothesis, ZeroSearch
from unembed.decoding.zero.words import WordBank
from unembed.encoders import Encoder
from unembed.measures.vectors import normalise


@dataclass
class ZeroTools:
    """What all vectors are searched with."""

    encoder: Encoder
    """The encoder under attack."""
    local: Encoder
    """Ranks texts."""
    language: LanguageModel
    tokenizer: Tokenizer
    """Of the canvases."""
    bank: WordBank
    longest: int
    """Tokens that a canvas holds."""
    _pairs: dict[int, tuple[np.ndarray, np.ndarray]] = field(default_factory=dict)

    @property
    def same(self) -> bool:
        """Whether the encoder under attack is the local one."""
        ours, theirs = self.local.description, self.encoder.description
        return (ours.name, ours.prompt, ours.dim) == (theirs.name, theirs.prompt, theirs.dim)

    def pairs(self, count: int) -> tuple[np.ndarray, np.ndarray] | None:
        """Return the vectors of some everyday texts by both encoders, for the first map; None if there is no map."""
        if self.same:
            return None
        if count not in self._pairs:
            texts = bundled_texts()[:count]
            self._pairs[count] = normalise(self.local.encode(texts)), normalise(self.encoder.encode(texts))
        return self._pairs[count]

    def fits(self, text: str) -> bool:
        """Whether a canvas holds a text."""
        return len(self.tokenizer.encode(text, add_special_tokens=False).ids) <= self.longest


def decode_zero(
    tools: ZeroTools,
    vectors: np.ndarray,
    config: ZeroConfig,
    priors: np.ndarray | None = None,
    *,
    interrupted: Callable[[], bool] = lambda: False,
) -> Iterator[Step]:
    """Search for the text of each vector (n, d), one after another, and yield every round.

    Args:
        tools: encoders, language model and words.
        vectors: (n, d) by the encoder under attack.
        config: how long to search.
        priors: (n, words) how much likelier than usual each vector makes each word, in nats.
        interrupted: asked between rounds. Once it says yes, the search ends with its best text so far, and the vectors
            whose search has not begun have no step.
    """
    vocabulary = CanvasVocabulary.of(tools.tokenizer)
    for row, vector in enumerate(vectors):
        if interrupted():
            return
        search = ZeroSearch(
            vector,
            config,
            bank=tools.bank,
            language=tools.language,
            local=tools.local.encode,
            theirs=tools.encoder.encode,
            pairs=tools.pairs(config.pairs),
            prior=None if priors is None else priors[row],
            fits=tools.fits,
        )
        before: list[int] = []
        for passes, best in enumerate(search.rounds(), 1):
            ids = tools.tokenizer.encode(best.text, add_special_tokens=False).ids
            yield _step(row, ids, before, best, passes, search.texts_embedded, vocabulary, final=False)
            before = ids
            if interrupted():
                break
        ids = tools.tokenizer.encode(search.best.text, add_special_tokens=False).ids
        yield _step(row, ids, before, search.best, passes, search.texts_embedded, vocabulary, final=True)


def _step(
    row: int,
    ids: list[int],
    before: list[int],
    best: Hypothesis,
    passes: int,
    texts_embedded: int,
    vocabulary: CanvasVocabulary,
    *,
    final: bool,
) -> Step:
    """Return a round as a step: the best text so far. Every token has the mean probability by the language model."""
    ids = [token for token in ids if token < vocabulary.size]
    sure = math.exp(best.nats / max(1, len(ids)))
    changed = [place >= len(before) or token != before[place] for place, token in enumerate(ids)]
    return Step(
        rows=torch.tensor([row]),
        candidate=torch.tensor([0]),
        canvas=torch.tensor([ids], dtype=torch.long).reshape(1, len(ids)),
        changed=torch.tensor([changed], dtype=torch.bool).reshape(1, len(ids)),
        confidence=torch.full((1, len(ids)), sure),
        mask_rate=torch.tensor([0.0]),
        passes=torch.tensor([passes]),
        score=torch.tensor([best.cosine]),
        final=torch.tensor([final]),
        texts_embedded=torch.tensor([texts_embedded]),
    )
