"""A defence that moves each vector towards its neighbours in the collection."""

from typing import Self

import numpy as np

from unembed.defences.transform import Transform
from unembed.measures.vectors import normalise

NEIGHBOURS = 8
_ROWS = 512


class Mixing(Transform):
    """A weighted mean of the vector and its nearest neighbours."""

    name = "mix"
    title = "Mixing with neighbours"
    meaning = f"weight of the mean of the {NEIGHBOURS} nearest neighbours, from 0 to 1"
    knowledge = "random"
    threat = (
        "Against whoever copies the vectors. What a text has in common with its neighbours stays, what only it says is "
        "weakened. A text without near neighbours is moved towards texts that have little to do with it."
    )

    @classmethod
    def problem_with(cls, value: float, dim: int) -> str | None:
        """Refuse what is no weight."""
        return None if 0 < value <= 1 else f"the weight must lie between 0 and 1, not {value:g}"

    @classmethod
    def fit(cls, value: float, vectors: np.ndarray, generator: np.random.Generator) -> Self:
        """Nothing is learnt: neighbours are looked for among the vectors that are defended together."""
        return cls(value, {})

    def apply(self, vectors: np.ndarray, release: int = 0) -> np.ndarray:
        """Mix each vector with its neighbours among the given ones."""
        return np.asarray((1.0 - self.value) * vectors + self.value * neighbour_means(vectors), dtype=np.float32)


def neighbour_means(vectors: np.ndarray) -> np.ndarray:
    """Return the mean of each vector's nearest neighbours, by the cosine; of a single vector, the vector itself."""
    count = min(NEIGHBOURS, len(vectors) - 1)
    if count < 1:
        return vectors
    directions = normalise(vectors)
    means = np.empty(vectors.shape, dtype=np.float32)
    for start in range(0, len(vectors), _ROWS):
        part = slice(start, start + _ROWS)
        nearness = directions[part] @ directions.T
        nearness[np.arange(len(nearness)), np.arange(start, start + len(nearness))] = -np.inf
        nearest = np.argpartition(-nearness, count - 1, axis=1)[:, :count]
        means[part] = vectors[nearest].mean(1)
    return means
