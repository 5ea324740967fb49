"""Defences that keep fewer numbers of each vector. Both are public."""

from typing import Self

import numpy as np

from unembed.defences.transform import Layout, Transform, whole


class Truncation(Transform):
    """The first numbers of the vector, as Matryoshka encoders are meant to be cut."""

    name = "truncate"
    title = "Truncation"
    meaning = "numbers that are kept, the first ones"
    knowledge = "public"
    narrows = True
    threat = "Against whoever copies the vectors. What the dropped numbers said is gone for everybody."

    @classmethod
    def problem_with(cls, value: float, dim: int) -> str | None:
        """Refuse to keep more than there are."""
        return whole(value, 1, dim, "the numbers that are kept")

    @classmethod
    def fit(cls, value: float, vectors: np.ndarray, generator: np.random.Generator) -> Self:
        """Note how many numbers there were."""
        return cls(value, {"dim": np.array([vectors.shape[1]])})

    def apply(self, vectors: np.ndarray, release: int = 0) -> np.ndarray:
        """Cut."""
        return vectors[:, : round(self.value)]

    def queries(self, vectors: np.ndarray) -> np.ndarray:
        """Cut the query, too."""
        return self.apply(vectors)[:, None]

    def undo(self, vectors: np.ndarray) -> np.ndarray:
        """Put zeros where numbers were dropped."""
        missing = int(self.state["dim"][0]) - vectors.shape[1]
        return np.pad(vectors, ((0, 0), (0, missing)))

    def layout(self, before: Layout) -> Layout:
        """Return fewer numbers."""
        return Layout(round(self.value), before.bits, before.extra_bytes)


class PrincipalComponents(Transform):
    """Coordinates along the directions in which the vectors of the collection lie."""

    name = "pca"
    title = "Principal components"
    meaning = "directions that are kept, those with most of the vectors' length"
    knowledge = "public"
    narrows = True
    threat = "As truncation, but what is kept is what tells most about the collection."

    @classmethod
    def problem_with(cls, value: float, dim: int) -> str | None:
        """Refuse to keep more than there are."""
        return whole(value, 1, dim, "the directions that are kept")

    @classmethod
    def fit(cls, value: float, vectors: np.ndarray, generator: np.random.Generator) -> Self:
        """Find the directions. The mean is not taken off, so that cosines stay what they are."""
        directions = np.linalg.eigh(vectors.T.astype(np.float64) @ vectors)[1][:, ::-1]
        return cls(value, {"directions": directions[:, : round(value)].astype(np.float32)})

    def apply(self, vectors: np.ndarray, release: int = 0) -> np.ndarray:
        """Return the coordinates."""
        return np.asarray(vectors @ self.state["directions"])

    def queries(self, vectors: np.ndarray) -> np.ndarray:
        """Return the query's coordinates, too."""
        return self.apply(vectors)[:, None]

    def undo(self, vectors: np.ndarray) -> np.ndarray:
        """Return the vectors that have these coordinates."""
        return np.asarray(vectors @ self.state["directions"].T)

    def layout(self, before: Layout) -> Layout:
        """Return fewer numbers."""
        return Layout(round(self.value))
