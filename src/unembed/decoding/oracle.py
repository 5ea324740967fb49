"""What embeds hypotheses for guided decoding: token ids in, vectors and substitutions out.

The one place where decoding meets text: a hypothesis is worth what the vector of its *text* is worth, not of its ids.
"""

from collections.abc import Sequence
from typing import Protocol

import numpy as np
from tokenizers import Tokenizer

from unembed.canvas import CanvasVocabulary
from unembed.encoders import Encoder, SubstitutingEncoder

Ids = tuple[int, ...]


class Oracle(Protocol):
    """Answers what the encoder would make of token ids."""

    def settle(self, hypotheses: Sequence[Ids]) -> list[Ids | None]:
        """Return the ids that each hypothesis has after it was written as text and read again; None if it is none."""
        ...

    def embed(self, hypotheses: Sequence[Ids]) -> np.ndarray:
        """Return the normalised vectors (n, d) of settled hypotheses."""
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

    def __init__(self, encoder: Encoder, tokenizer: Tokenizer, vocabulary: CanvasVocabulary, longest: int) -> None:
        self.encoder = encoder
        self.tokenizer = tokenizer
        self.vocabulary = vocabulary
        self.longest = longest
        if isinstance(encoder, SubstitutingEncoder):
            self._theirs = encoder.tokenizer
            self._ours = _translation(self._theirs, tokenizer, vocabulary)
            self._untranslated = np.flatnonzero(self._ours < 0).tolist()

    def settle(self, hypotheses: Sequence[Ids]) -> list[Ids | None]:
        """Return the ids of each hypothesis as text; None if it says nothing, or more than a canvas holds."""
        texts = self.tokenizer.decode_batch([list(ids) for ids in hypotheses])
        special = set(self.vocabulary.special)
        settled: list[Ids | None] = []
        for encoding in self.tokenizer.encode_batch(texts, add_special_tokens=False):
            fits = 0 < len(encoding.ids) <= self.longest and not special.intersection(encoding.ids)
            settled.append(tuple(encoding.ids) if fits else None)
        return settled

    def embed(self, hypotheses: Sequence[Ids]) -> np.ndarray:
        """Return the normalised vectors (n, d) of the hypotheses' texts."""
        vectors = self.encoder.encode(self.tokenizer.decode_batch([list(ids) for ids in hypotheses]))
        normalised: np.ndarray = vectors / np.maximum(np.linalg.norm(vectors, axis=1, keepdims=True), 1e-12)
        return normalised

    def substitutions(
        self, hypotheses: Sequence[Ids], targets: np.ndarray, top: int
    ) -> list[tuple[np.ndarray, np.ndarray] | None]:
        """Ask the encoder for its gradient, if it has one, where it reads a text as the same pieces as we do."""
        found: list[tuple[np.ndarray, np.ndarray] | None] = [None] * len(hypotheses)
        if not isinstance(self.encoder, SubstitutingEncoder):
            return found
        texts = self.tokenizer.decode_batch([list(ids) for ids in hypotheses])
        read = self._theirs.encode_batch(texts, add_special_tokens=False)
        places = [place for place, ids in enumerate(hypotheses) if tuple(self._ours[read[place].ids]) == ids]
        if not places:
            return found
        pairs = self.encoder.substitutions(
            [texts[place] for place in places], targets[places], top, forbidden=self._untranslated
        )
        for place, pair in zip(places, pairs, strict=True):
            if pair is not None and len(pair[0]) == len(hypotheses[place]):
                found[place] = (self._ours[pair[0]], pair[1])
        return found


def _translation(theirs: Tokenizer, ours: Tokenizer, vocabulary: CanvasVocabulary) -> np.ndarray:
    """Return our id for each id of the encoder: that of the same piece; -1 where no canvas may hold it."""
    pieces = ours.get_vocab(with_added_tokens=True)
    table = np.full(CanvasVocabulary.of(theirs).size, -1)
    for piece, token in theirs.get_vocab(with_added_tokens=True).items():
        table[token] = pieces.get(piece, -1)
    table[np.isin(table, vocabulary.special)] = -1
    return table
