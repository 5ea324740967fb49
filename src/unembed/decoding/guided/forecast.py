"""Forecast: what the vector of a text should be, given those of the texts that a search has embedded. No encoder.

A ridge regression on what a text consists of: its tokens, which stand side by side, and which comes before which. It
is fitted around one text, so it only has to explain what differs from it. Where a surrogate of the encoder drafts
vectors, a second regression explains what its drafts get wrong: that is closer, and takes a pass of the surrogate.
"""

from collections.abc import Callable, Sequence

import numpy as np
import torch

from unembed.decoding.guided.hypothesis import Ids
from unembed.encoders.precision import has_native_bfloat16

_BUCKETS = 2048  # of the hashed features
_REMEMBERED = 640  # texts, the last ones
_DRAFTS_KEPT = 8192  # before those are forgotten that are not needed
_RIDGE = 0.3
# Weights of the features: a token, two neighbours, and two tokens in this order at most so far apart.
_TOKEN, _NEIGHBOURS, _ORDER = 1.0, 0.7, 0.2
_FURTHEST = 8
# Odd numbers that spread hashes, and what stands before and after each text.
_SPREAD = np.array([0x9E3779B97F4A7C15, 0xC2B2AE3D27D4EB4F, 0x165667B19E3779F9, 0xD6E8FEB86659FD93], dtype=np.uint64)
_START, _END = 1 << 40, 1 << 41


Draft = Callable[[Sequence[Ids]], np.ndarray]
"""Returns what the vectors (n, d) of texts may be, without the encoder."""


class Forecast:
    """Remembers texts with their vectors, and predicts the vectors of others."""

    def __init__(self, dimensions: int, draft: Draft | None = None) -> None:
        self._draft = draft
        self._drafts: dict[Ids, np.ndarray] = {}
        self._texts: list[Ids] = []
        self._features = np.empty((0, _BUCKETS), dtype=np.float32)
        self._vectors = np.empty((0, dimensions), dtype=np.float32)
        self._fitted: dict[Ids, list[np.ndarray]] = {}

    @property
    def drafts(self) -> bool:
        """Whether it can look at texts closely."""
        return self._draft is not None

    def learn(self, texts: Sequence[Ids], vectors: Sequence[np.ndarray]) -> None:
        """Take in texts that were embedded."""
        if texts:
            self._texts = [*self._texts, *texts][-_REMEMBERED:]
            self._features = np.concatenate([self._features, describe(texts)])[-_REMEMBERED:]
            self._vectors = np.concatenate([self._vectors, np.stack(vectors)])[-_REMEMBERED:].astype(np.float32)
            self._fitted.clear()

    def predict(self, centre: Ids, vector: np.ndarray, texts: Sequence[Ids], *, closely: bool = False) -> np.ndarray:
        """Return the vectors (n, d) that texts should have, given a similar text and its vector.

        ``closely``: by drafts, and what is known about their errors.
        """
        origin = describe([centre])
        if centre not in self._fitted:
            self._fitted[centre] = self._fit(centre, vector, origin)
        weights = self._fitted[centre]
        expected: np.ndarray = vector + _product(describe(texts) - origin, weights[-1 if closely else 0])
        if closely:
            drafts = self._drafted([*texts, centre])
            expected = expected + drafts[:-1] - drafts[-1]
        return expected

    def _fit(self, centre: Ids, vector: np.ndarray, origin: np.ndarray) -> list[np.ndarray]:
        """Return the weights (B, d) of the differences from a text; with drafts also those of their errors."""
        known = self._features - origin
        alike = known @ known.T
        alike[np.diag_indices(len(alike))] += _RIDGE
        explained = [self._vectors - vector]
        if self.drafts:
            drafts = self._drafted([*self._texts, centre])
            explained.append(explained[0] - (drafts[:-1] - drafts[-1]))
        factor = torch.linalg.cholesky(torch.from_numpy(alike))
        wanted = np.concatenate(explained, axis=1, dtype=np.float32)
        solved = torch.cholesky_solve(torch.from_numpy(wanted), factor).numpy()
        return np.split(_product(known.T, solved), len(explained), axis=1)

    def _drafted(self, texts: Sequence[Ids]) -> np.ndarray:
        assert self._draft is not None
        new = [text for text in dict.fromkeys(texts) if text not in self._drafts]
        if len(self._drafts) + len(new) > _DRAFTS_KEPT:
            needed = {*self._texts, *texts}
            self._drafts = {text: vector for text, vector in self._drafts.items() if text in needed}
        if new:
            self._drafts.update(zip(new, self._draft(new), strict=True))
        return np.stack([self._drafts[text] for text in texts])


def _product(one: np.ndarray, other: np.ndarray) -> np.ndarray:
    """Return the product of matrices, to two digits where that is quicker: a forecast is no more exact."""
    cpu = torch.device("cpu")
    precision = torch.bfloat16 if has_native_bfloat16(cpu) else torch.float32
    product = torch.from_numpy(one).to(precision) @ torch.from_numpy(other).to(precision)
    return product.float().numpy()


def describe(texts: Sequence[Ids]) -> np.ndarray:
    """Return the hashed features (n, B) of texts."""
    features = np.zeros((len(texts), _BUCKETS), dtype=np.float32)
    by_length: dict[int, list[int]] = {}
    for number, text in enumerate(texts):
        by_length.setdefault(len(text), []).append(number)
    for numbers in by_length.values():
        ids = np.array([(_START, *texts[number], _END) for number in numbers], dtype=np.uint64)
        hashes, weights = [ids[:, 1:-1] * _SPREAD[0]], [_TOKEN]
        for distance in range(1, min(_FURTHEST, ids.shape[1] - 1) + 1):
            pairs = ids[:, :-distance] * _SPREAD[1] + ids[:, distance:] * _SPREAD[2]
            hashes.append(pairs)
            weights.append(_ORDER)
            if distance == 1:
                hashes.append(pairs * _SPREAD[3])
                weights.append(_NEIGHBOURS)
        amounts = np.concatenate([np.full(part.shape[1], weight) for part, weight in zip(hashes, weights, strict=True)])
        mixed = np.concatenate(hashes, axis=1) * _SPREAD[3]
        mixed ^= mixed >> np.uint64(29)
        mixed *= _SPREAD[0]
        # The highest bit is the sign, so that two features in one bucket cancel as often as they add up.
        signs = 1.0 - 2.0 * (mixed >> np.uint64(63)).astype(np.float32)
        buckets = (mixed >> np.uint64(40)).astype(np.int64) % _BUCKETS + _BUCKETS * np.arange(len(numbers))[:, None]
        sums = np.bincount(buckets.ravel(), (signs * amounts).ravel(), minlength=_BUCKETS * len(numbers))
        features[numbers] = sums.reshape(len(numbers), _BUCKETS)
    return features
