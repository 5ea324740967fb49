"""Which tokens follow which: how often two or three stood side by side in the training texts. Knows no vectors.

A search asks it which order of the same words is more natural. That takes microseconds; the denoiser takes a pass.
"""

import io
import zipfile
from collections.abc import Callable, Iterable, Sequence
from typing import Self

import numpy as np

from unembed.errors import CheckpointError, first_line

# Rarer pairs and triples are left out: they say little, and most are rare.
_LEAST_PAIRS, _LEAST_TRIPLES = 3, 4
_SAMPLE = 20_000  # texts that tell what is usual
_ARRAYS = ("tokens", "pairs", "pair_counts", "triples", "triple_counts")


class NGrams:
    """Probabilities of tokens after the two before them: interpolated, as Witten and Bell do."""

    def __init__(
        self,
        tokens: np.ndarray,
        pairs: np.ndarray,
        pair_counts: np.ndarray,
        triples: np.ndarray,
        triple_counts: np.ndarray,
        usual: float = 0.0,
        surprise: float = 0.0,
    ) -> None:
        """Take counts.

        Args:
            tokens: (V + 1,) how often each token occurs; the last entry is the number of texts, for their beginning.
            pairs: first * (V + 1) + second of each pair that is kept, in ascending order.
            pair_counts: how often each occurs.
            triples: number of its first pair * (V + 1) + third of each triple that is kept, in ascending order.
            triple_counts: how often each occurs.
            usual: log-odds per token of training texts, see :meth:`log_odds`.
            surprise: negative log-probability per token of training texts.
        """
        self.tokens, self.usual, self.surprise = tokens, usual, surprise
        self.pairs, self.pair_counts, self.triples, self.triple_counts = pairs, pair_counts, triples, triple_counts
        self._size = len(tokens)
        some = tokens[:-1] + 0.1
        self._alone = some / some.sum()
        self._after_token = _left_over(tokens, pairs // self._size, pair_counts, kinds=1.0, least=1e-9)
        self._after_pair = _left_over(pair_counts, triples // self._size, triple_counts, kinds=2.0, least=1.0)

    @property
    def vocabulary(self) -> int:
        """Number of ids."""
        return self._size - 1

    @classmethod
    def count(cls, read: Callable[[], Iterable[tuple[np.ndarray, np.ndarray]]], vocabulary: int) -> Self:
        """Count the tokens of texts.

        Args:
            read: gives the texts, batch by batch, each time anew: token ids (n, T), and how many each text has (n,).
            vocabulary: number of ids.
        """
        size = vocabulary + 1
        tokens = np.zeros(size, dtype=np.int64)
        pairs = _Counter()
        for ids, lengths in read():
            first, second, third = _windows(ids, lengths, start=vocabulary)
            tokens += np.bincount(third, minlength=size)
            tokens[-1] += len(ids)
            pairs.add(second * size + third)
        kept_pairs, pair_counts = pairs.at_least(_LEAST_PAIRS)
        triples = _Counter()
        for ids, lengths in read():
            first, second, third = _windows(ids, lengths, start=vocabulary)
            number, known = _find(kept_pairs, first * size + second)
            triples.add((number * size + third)[known])
        kept_triples, triple_counts = triples.at_least(_LEAST_TRIPLES)
        counted = cls(tokens, kept_pairs, pair_counts, kept_triples, triple_counts)
        ids, lengths = (part[:_SAMPLE] for part in next(iter(read())))
        after, alone = counted._log_probabilities(*_windows(ids, lengths, start=vocabulary))
        counted.usual, counted.surprise = float((after - alone).mean()), -float(after.mean())
        return counted

    def log_odds(self, texts: Sequence[Sequence[int]]) -> np.ndarray:
        """Return how much likelier each text is than its tokens in any order, in nats (n,)."""
        if not texts:
            return np.zeros(0)
        lengths = np.array([len(ids) for ids in texts])
        rows = np.zeros((len(texts), lengths.max()), dtype=np.int64)
        inside = np.arange(rows.shape[1]) < lengths[:, None]
        rows[inside] = [token for ids in texts for token in ids]
        after, alone = self._log_probabilities(*_windows(rows, lengths, start=self._size - 1))
        owner = np.repeat(np.arange(len(texts)), lengths)
        return np.bincount(owner, weights=after - alone, minlength=len(texts))

    def fluency(self, texts: Sequence[Sequence[int]]) -> np.ndarray:
        """Return how natural the order of each text's tokens is, in nats (n,).

        A text in the usual order has what a log-probability gives to usual tokens, however rare its own are. What words
        a text has is the vector's business.
        """
        lengths = np.array([len(ids) for ids in texts])
        fluency: np.ndarray = self.log_odds(texts) - (self.usual + self.surprise) * lengths
        return fluency

    def _log_probabilities(self, first: np.ndarray, second: np.ndarray, third: np.ndarray) -> tuple[np.ndarray, ...]:
        """Return the log-probabilities of third tokens after two others, and in any place."""
        alone = self._alone[third]
        probable = alone
        if len(self.pairs):
            number, known = _find(self.pairs, second * self._size + third)
            total, left = self._after_token
            probable = (self.pair_counts[number] * known + left[second] * alone) / total[second]
        if len(self.triples):
            pair, familiar = _find(self.pairs, first * self._size + second)
            number, known = _find(self.triples, pair * self._size + third)
            total, left = self._after_pair
            closer = (self.triple_counts[number] * known + left[pair] * probable) / total[pair]
            probable = np.where(familiar, closer, probable)
        return np.log(probable), np.log(alone)

    def to_bytes(self) -> bytes:
        """Return the contents of a file: an .npz archive of arrays."""
        buffer = io.BytesIO()
        np.savez_compressed(
            buffer,
            tokens=self.tokens.astype(np.uint32),
            pairs=np.diff(self.pairs, prepend=0).astype(np.uint64),
            pair_counts=self.pair_counts.astype(np.uint32),
            triples=np.diff(self.triples, prepend=0).astype(np.uint64),
            triple_counts=self.triple_counts.astype(np.uint32),
            usual=np.array([self.usual, self.surprise]),
        )
        return buffer.getvalue()

    @classmethod
    def from_bytes(cls, contents: bytes) -> Self:
        """Read what :meth:`to_bytes` made."""
        try:
            with np.load(io.BytesIO(contents), allow_pickle=False) as stored:
                tokens, pairs, pair_counts, triples, triple_counts = (stored[name] for name in _ARRAYS)
                usual, surprise = stored["usual"].tolist()
        except (OSError, ValueError, KeyError, EOFError, zipfile.BadZipFile) as error:
            raise CheckpointError(
                f"The inverter's n-grams cannot be read: {first_line(error)}.",
                "Copy or download the whole folder again.",
            ) from error
        return cls(
            tokens.astype(np.int64),
            np.cumsum(pairs).astype(np.int64),
            pair_counts.astype(np.int64),
            np.cumsum(triples).astype(np.int64),
            triple_counts.astype(np.int64),
            usual,
            surprise,
        )


class _Counter:
    """Counts numbers, many at a time."""

    def __init__(self) -> None:
        self._numbers = np.zeros(0, dtype=np.int64)
        self._counts = np.zeros(0, dtype=np.int64)

    def add(self, numbers: np.ndarray) -> None:
        new, counts = np.unique(numbers, return_counts=True)
        both, place = np.unique(np.concatenate([self._numbers, new]), return_inverse=True)
        total = np.bincount(place, weights=np.concatenate([self._counts, counts]), minlength=len(both))
        self._numbers, self._counts = both, total.astype(np.int64)

    def at_least(self, least: int) -> tuple[np.ndarray, np.ndarray]:
        kept = self._counts >= least
        return self._numbers[kept], self._counts[kept]


def _windows(ids: np.ndarray, lengths: np.ndarray, *, start: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return each token of texts (n, T) with the two before it; before a text stands its ``start``, twice."""
    padded = np.full((len(ids), ids.shape[1] + 2), start, dtype=np.int64)
    padded[:, 2:] = ids
    inside = np.arange(ids.shape[1]) < np.asarray(lengths)[:, None]
    return padded[:, :-2][inside], padded[:, 1:-1][inside], padded[:, 2:][inside]


def _find(numbers: np.ndarray, wanted: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return where numbers stand in an ascending list, and which do; the others are said to stand at its beginning."""
    if not len(numbers):
        return np.zeros(len(wanted), dtype=np.int64), np.zeros(len(wanted), dtype=bool)
    place = np.searchsorted(numbers, wanted)
    place[place == len(numbers)] = 0
    known = numbers[place] == wanted
    return np.where(known, place, 0), known


def _left_over(
    occurrences: np.ndarray, before: np.ndarray, counts: np.ndarray, *, kinds: float, least: float
) -> tuple[np.ndarray, np.ndarray]:
    """Return for each beginning its occurrences, and how many of them are left for what was not counted after it.

    Each kind of continuation adds ``kinds`` to both, and so does ``least``.
    """
    counted = np.bincount(before, weights=counts, minlength=len(occurrences))
    extra = kinds * np.bincount(before, minlength=len(occurrences)) + least
    return occurrences + extra, occurrences + extra - counted
