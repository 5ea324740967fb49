"""Defences with a key: rotations that only its holder can undo."""

from typing import Self

import numpy as np

from unembed.clusters import k_means, spread
from unembed.defences.transform import Transform, whole
from unembed.measures.vectors import normalise

_MOST_CELLS = 1024
_ROUNDS = 10
_ROWS = 20_000
_PROBES = 4
# How much it counts against a cell that another one is nearer, when a vector is turned back.
_ELSEWHERE = 10.0


class Rotation(Transform):
    """One secret rotation of all vectors."""

    name = "rotate"
    title = "Secret rotation"
    meaning = ""
    default = 1.0
    knowledge = "secret"
    threat = (
        "Against whoever has the vectors and neither the key nor a text whose vector is stored. Distances stay as they "
        "are, so search is as good as before, and who knows some texts with their vectors can compute the key."
    )

    @classmethod
    def fit(cls, value: float, vectors: np.ndarray, generator: np.random.Generator) -> Self:
        """Draw the key."""
        return cls(value, {"rotation": random_rotation(vectors.shape[1], generator)})

    def apply(self, vectors: np.ndarray, release: int = 0) -> np.ndarray:
        """Turn the vectors."""
        return np.asarray(vectors @ self.state["rotation"])

    def queries(self, vectors: np.ndarray) -> np.ndarray:
        """Turn the query, too."""
        return self.apply(vectors)[:, None]

    def undo(self, vectors: np.ndarray) -> np.ndarray:
        """Turn the vectors back."""
        return np.asarray(vectors @ self.state["rotation"].T)


class CellRotation(Transform):
    """A secret rotation for each cell of the collection."""

    name = "rotate-cells"
    title = "Secret rotation per cell"
    meaning = "cells, each with a key"
    knowledge = "secret"
    threat = (
        "As one rotation, but texts with known vectors give away the keys of their own cells only. Distances hold "
        "within a cell. A search turns its query with the keys of the nearest cells, so it costs several searches."
    )

    @classmethod
    def problem_with(cls, value: float, dim: int) -> str | None:
        """Refuse what is no number of cells."""
        return whole(value, 2, _MOST_CELLS, "the cells")

    @classmethod
    def fit(cls, value: float, vectors: np.ndarray, generator: np.random.Generator) -> Self:
        """Find the cells, by k-means, and draw a key for each."""
        rows = generator.choice(len(vectors), min(_ROWS, len(vectors)), replace=False)
        directions = normalise(vectors[rows])
        cells = min(round(value), len(rows))
        centres = normalise(k_means(directions, spread(directions, cells, generator), _ROUNDS))
        keys = np.stack([random_rotation(vectors.shape[1], generator) for _ in range(cells)])
        return cls(value, {"centres": centres, "rotations": keys, "precision": _precision(directions)})

    def apply(self, vectors: np.ndarray, release: int = 0) -> np.ndarray:
        """Turn each vector with the key of the nearest cell."""
        return self._turn(vectors, self._nearness(vectors).argmax(1), back=False)

    def queries(self, vectors: np.ndarray) -> np.ndarray:
        """Turn the query with the keys of the nearest cells, one form each."""
        nearest = np.argsort(-self._nearness(vectors), axis=1)[:, :_PROBES]
        return np.stack([self._turn(vectors, cells, back=False) for cells in nearest.T], axis=1)

    def undo(self, vectors: np.ndarray) -> np.ndarray:
        """Turn the vectors back.

        The right cell is found with the key: turned back with it, a vector looks like one of the collection, and is
        nearest to the centre of that very cell; or nearly so, if it was rounded after it was turned.
        """
        directions = normalise(vectors)
        strangeness = np.empty((len(vectors), len(self.state["centres"])))
        for cell, rotation in enumerate(self.state["rotations"]):
            turned = directions @ rotation.T
            nearness = self._nearness(turned)
            behind = nearness.max(1) - nearness[:, cell]
            unusual = np.einsum("nd,de,ne->n", turned, self.state["precision"], turned, optimize=True)
            strangeness[:, cell] = unusual * (1.0 + _ELSEWHERE * behind)
        return self._turn(vectors, strangeness.argmin(1), back=True)

    def _nearness(self, vectors: np.ndarray) -> np.ndarray:
        return np.asarray(normalise(vectors) @ self.state["centres"].T)

    def _turn(self, vectors: np.ndarray, cells: np.ndarray, *, back: bool) -> np.ndarray:
        turned = np.empty(vectors.shape, dtype=np.float32)
        for cell in np.unique(cells):
            rows = cells == cell
            rotation = self.state["rotations"][cell]
            turned[rows] = vectors[rows] @ (rotation.T if back else rotation)
        return turned


def _precision(directions: np.ndarray) -> np.ndarray:
    """Return the inverse of the vectors' second moments: large where the vectors of the collection never point."""
    moments = directions.T.astype(np.float64) @ directions / len(directions)
    least = np.trace(moments) / len(moments) * 1e-2
    return np.asarray(np.linalg.inv(moments + least * np.eye(len(moments))), dtype=np.float32)


def random_rotation(dimension: int, generator: np.random.Generator) -> np.ndarray:
    """Return an orthogonal matrix (d, d), uniformly at random."""
    factor, triangle = np.linalg.qr(generator.normal(size=(dimension, dimension)))
    return np.asarray(factor * np.sign(np.diag(triangle)), dtype=np.float32)
