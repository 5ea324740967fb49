"""What embeds hypotheses for guided decoding. The only module of decoding that knows tokenizers and encoders.

A hypothesis is judged by the vector of its *text*, not of its ids.
"""

from collections.abc import Sequence
from typing import Protocol

import numpy as np
from tokenizers import Tokenizer

from unembed.canvas import CanvasVocabulary
from unembed.decoding.guided.forecast import Draft
from unembed.decoding.guided.hypothesis import Ids
from unembed.encoders import Encoder, can_substitute, quicker
from unembed.model import NGrams


class Oracle(Protocol):
    """Answers what the encoder would make of token ids."""

    def settle(self, hypotheses: Sequence[Ids]) -> list[Ids | None]:
        """Decode each hypothesis to text and return the ids of that text; None if no canvas can hold it."""
        ...

    def write(self, hypotheses: Sequence[Ids]) -> list[str]:
        """Return the texts of hypotheses."""
        ...

    @property
    def rounds(self) -> bool:
        """Whether the vectors of ``embed`` are rounded, so that ``embed_exactly`` gives slightly other ones."""
        ...

    def embed(self, texts: Sequence[str]) -> np.ndarray:
        """Return the normalised vectors (n, d) of texts, as exactly as a search needs them."""
        ...

    def embed_exactly(self, texts: Sequence[str]) -> np.ndarray:
        """Return the normalised vectors (n, d) of texts."""
        ...

    @property
    def draft(self) -> Draft | None:
        """What estimates vectors of hypotheses without the encoder, if anything does."""
        ...

    @property
    def ngrams(self) -> NGrams | None:
        """What says how natural the order of a hypothesis's tokens is, if anything does."""
        ...

    def substitutions(
        self, hypotheses: Sequence[Ids], targets: np.ndarray, top: int
    ) -> list[tuple[np.ndarray, np.ndarray] | None]:
        """Estimate, by the encoder's gradient, what each substitution of one token would add to the cosine.

        Returns:
            For each hypothesis the ``top`` tokens at each position and their gains, both (T, top), best first; None
            where the encoder gives no gradient.
        """
        ...


class TextOracle:
    """An :class:`Oracle` that writes hypotheses as text and gives them to an encoder."""

    def __init__(
        self,
        encoder: Encoder,
        tokenizer: Tokenizer,
        vocabulary: CanvasVocabulary,
        longest: int,
        draft: Draft | None = None,
        ngrams: NGrams | None = None,
    ) -> None:
        self.encoder = encoder
        self.draft = draft
        self.ngrams = ngrams
        self._quick = quicker(encoder)
        self.tokenizer = tokenizer
        self.vocabulary = vocabulary
        self.longest = longest
        if can_substitute(self._quick):
            self._theirs = self._quick.tokenizer
            self._ours = _translation(self._theirs, tokenizer, vocabulary)
            self._untranslated = np.flatnonzero(self._ours < 0).tolist()

    def settle(self, hypotheses: Sequence[Ids]) -> list[Ids | None]:
        """Return the ids of each hypothesis as text; None if it says nothing, or more than a canvas holds."""
        texts = self.write(hypotheses)
        special = set(self.vocabulary.special)
        settled: list[Ids | None] = []
        for encoding in self.tokenizer.encode_batch(texts, add_special_tokens=False):
            fits = 0 < len(encoding.ids) <= self.longest and not special.intersection(encoding.ids)
            settled.append(tuple(encoding.ids) if fits else None)
        return settled

    def write(self, hypotheses: Sequence[Ids]) -> list[str]:
        """Return the texts of hypotheses, as the canvas's tokenizer writes them."""
        texts: list[str] = self.tokenizer.decode_batch([list(ids) for ids in hypotheses])
        return texts

    @property
    def rounds(self) -> bool:
        """Whether searching is done with a quicker encoder than the one given."""
        return self._quick is not self.encoder

    def embed(self, texts: Sequence[str]) -> np.ndarray:
        """Return the normalised vectors (n, d) of texts, by the quickest encoder that is good enough."""
        return _normalise(self._quick.encode(texts))

    def embed_exactly(self, texts: Sequence[str]) -> np.ndarray:
        """Return the normalised vectors (n, d) of texts, by the encoder given."""
        return _normalise(self.encoder.encode(texts))

    def substitutions(
        self, hypotheses: Sequence[Ids], targets: np.ndarray, top: int
    ) -> list[tuple[np.ndarray, np.ndarray] | None]:
        """Ask the encoder for its gradient, if it has one, where it reads a text as the same pieces as we do."""
        estimates: list[tuple[np.ndarray, np.ndarray] | None] = [None] * len(hypotheses)
        if not can_substitute(self._quick):
            return estimates
        texts = self.write(hypotheses)
        read = self._theirs.encode_batch(texts, add_special_tokens=False)
        alike = [index for index, ids in enumerate(hypotheses) if tuple(self._ours[read[index].ids]) == ids]
        if not alike:
            return estimates
        pairs = self._quick.substitutions(
            [texts[index] for index in alike], targets[alike], top, forbidden=self._untranslated
        )
        for index, pair in zip(alike, pairs, strict=True):
            if pair is not None and len(pair[0]) == len(hypotheses[index]):
                estimates[index] = (self._ours[pair[0]], pair[1])
        return estimates


def _normalise(vectors: np.ndarray) -> np.ndarray:
    normalised: np.ndarray = vectors / np.maximum(np.linalg.norm(vectors, axis=1, keepdims=True), 1e-12)
    return normalised


def _translation(theirs: Tokenizer, ours: Tokenizer, vocabulary: CanvasVocabulary) -> np.ndarray:
    """Return our id for each id of the encoder: that of the same piece; -1 where no canvas may hold it."""
    pieces = ours.get_vocab(with_added_tokens=True)
    table = np.full(CanvasVocabulary.of(theirs).size, -1)
    for piece, token in theirs.get_vocab(with_added_tokens=True).items():
        table[token] = pieces.get(piece, -1)
    table[np.isin(table, vocabulary.special)] = -1
    return table
