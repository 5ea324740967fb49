"""From vectors of the local encoder to those of the one under attack: a regression that learns from every answer."""

import numpy as np

from unembed.measures.vectors import normalise

# Of the regression, relative to the mean square of the centred local vectors.
_PENALTY = 0.3


class OnlineMap:
    """A ridge regression between centred directions, fitted again after every round."""

    def __init__(self, local: np.ndarray, theirs: np.ndarray) -> None:
        """Start from pairs of normalised vectors of the same texts: (n, d) and (n, k)."""
        self._local, self._theirs = local, theirs
        self._fitted = 0

    def learn(self, local: np.ndarray, theirs: np.ndarray) -> None:
        """Add pairs."""
        self._local, self._theirs = np.concatenate([self._local, local]), np.concatenate([self._theirs, theirs])

    def predict(self, local: np.ndarray) -> np.ndarray:
        """Return where the encoder under attack should put texts, given their local vectors (n, d): (n, k)."""
        self._fit()
        return normalise((local - self._local_mean) @ self._matrix + self._mean)

    def predict_changed(self, local: np.ndarray, parent_local: np.ndarray, parent: np.ndarray) -> np.ndarray:
        """Return the same for changed texts, given both vectors of what they were changed from: rows for rows.

        Only the difference is predicted, so that the map's error at the parent does not count.
        """
        self._fit()
        return normalise(parent + (local - parent_local) @ self._matrix)

    def pull_back(self, directions: np.ndarray) -> np.ndarray:
        """Return the directions (n, d) in which local vectors must move for their images to move like this (n, k)."""
        self._fit()
        pulled: np.ndarray = directions @ self._matrix.T
        return pulled

    def _fit(self) -> None:
        if self._fitted == len(self._local):
            return
        self._fitted = len(self._local)
        self._local_mean, self._mean = self._local.mean(0), self._theirs.mean(0)
        inputs, outputs = self._local - self._local_mean, self._theirs - self._mean
        gram = inputs @ inputs.T
        strength = _PENALTY * float(np.trace(gram)) / len(gram)
        self._matrix = inputs.T @ np.linalg.solve(gram + strength * np.eye(len(gram), dtype=gram.dtype), outputs)


class SameEncoder:
    """The map where the encoder under attack is the local one."""

    def learn(self, local: np.ndarray, theirs: np.ndarray) -> None:
        """Do nothing: there is nothing to learn."""

    def predict(self, local: np.ndarray) -> np.ndarray:
        """Return the vectors as they are."""
        return local

    def predict_changed(self, local: np.ndarray, parent_local: np.ndarray, parent: np.ndarray) -> np.ndarray:
        """Return the vectors as they are."""
        return local

    def pull_back(self, directions: np.ndarray) -> np.ndarray:
        """Return the directions as they are."""
        return directions
