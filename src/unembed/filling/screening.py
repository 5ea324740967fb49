"""Screening: what the cosine of a candidate should be, given those that were embedded. No encoder.

A ridge regression on what a candidate consists of: the embeddings of its tokens (their mean, the first, the last), and
which token stands at which place. A prediction adds up a few numbers per token, so that a hundred thousand candidates
take a fraction of a second.
"""

import numpy as np

from unembed.filling.pieces import Pieces

# Places whose tokens are told apart; those behind are treated as the last of them.
_PLACES = 4
# Buckets of the tokens at each place.
_BUCKETS = 512
_SPREAD = 0x9E3779B1
_RIDGE = 0.05
_TOKEN_WEIGHT = 0.5


class Screen:
    """Predicts a number for each candidate of a slot."""

    def __init__(self, pieces: Pieces, table: np.ndarray) -> None:
        """Describe candidates.

        Args:
            pieces: the tokens of the candidates.
            table: (tokens, width) token embeddings.
        """
        self._ids = np.where((pieces.ids >= 0) & (pieces.ids < len(table)), pieces.ids, -1)
        self._table = table
        self._scale = 1.0 / max(float(np.linalg.norm(table, axis=1).mean()), 1e-9)
        self._used = self._ids >= 0
        self._counts = np.maximum(self._used.sum(1), 1)
        self._last = np.take_along_axis(self._ids, (self._counts - 1)[:, None], axis=1)[:, 0]
        places = np.minimum(np.arange(self._ids.shape[1]), _PLACES - 1)
        hashed = ((self._ids.astype(np.uint64) + 1) * np.uint64(_SPREAD) >> np.uint64(7)) % np.uint64(_BUCKETS)
        self._buckets = hashed.astype(np.int64) + places * _BUCKETS

    def describe(self, rows: np.ndarray) -> np.ndarray:
        """Return the features (n, F) of candidates."""
        ids, used, width = self._ids[rows], self._used[rows], self._table.shape[1]
        vectors = self._scale * self._table[np.where(used, ids, 0)] * used[:, :, None]
        features = np.zeros((len(rows), 3 * width + _PLACES * _BUCKETS + _PLACES + 1), dtype=np.float32)
        features[:, :width] = vectors.sum(1) / self._counts[rows, None]
        features[:, width : 2 * width] = vectors[:, 0]
        features[:, 2 * width : 3 * width] = self._scale * self._table[self._last[rows]] * used.any(1)[:, None]
        for place in range(ids.shape[1]):
            here = np.flatnonzero(used[:, place])
            np.add.at(features, (here, 3 * width + self._buckets[rows[here], place]), _TOKEN_WEIGHT)
        features[np.arange(len(rows)), -1 - np.minimum(self._counts[rows], _PLACES)] = 1.0
        features[:, -1] = 1.0
        return features

    def predict(self, rows: np.ndarray, values: np.ndarray) -> tuple[np.ndarray, float]:
        """Predict the value of every candidate, given those of some.

        Returns:
            (n,) predictions, and how far they typically are from the truth.
        """
        features, mean = self.describe(rows), float(values.mean())
        target = (values - mean).astype(np.float32)
        if len(rows) <= features.shape[1]:
            alike = features @ features.T
            alike[np.diag_indices(len(alike))] += _RIDGE
            inverse = np.linalg.inv(alike)
            dual = inverse @ target
            weights = features.T @ dual
            errors = dual / np.maximum(np.diag(inverse), 1e-9)  # of each value, predicted from all the others
        else:
            alike = features.T @ features
            alike[np.diag_indices(len(alike))] += _RIDGE
            weights = np.linalg.solve(alike, features.T @ target)
            errors = target - features @ weights
        return mean + self._apply(weights), float(np.sqrt(np.mean(errors**2)))

    def _apply(self, weights: np.ndarray) -> np.ndarray:
        """Return the products of all candidates' features with weights, without writing the features down."""
        width = self._table.shape[1]
        weighted = self._scale * weights
        mean, first, last = (self._table @ weighted[part * width : (part + 1) * width] for part in range(3))
        by_place = np.append(_TOKEN_WEIGHT * weights[3 * width : 3 * width + _PLACES * _BUCKETS], 0.0)
        ids = np.where(self._used, self._ids, 0)
        total = (mean[ids] * self._used).sum(1) / self._counts
        total += first[ids[:, 0]] * self._used[:, 0] + last[np.maximum(self._last, 0)] * (self._last >= 0)
        total += (by_place[np.where(self._used, self._buckets, len(by_place) - 1)]).sum(1)
        result: np.ndarray = total + weights[-1 - np.minimum(self._counts, _PLACES)] + weights[-1]
        return result
