"""Defences that round numbers, as databases do to save room. All of them are public."""

from typing import Self

import numpy as np

from unembed.clusters import k_means, nearest_centres, spread
from unembed.defences.transform import Layout, Transform, whole

_CENTRES = 256  # one byte each
_ROUNDS = 10
_ROWS = 20_000
_SCALE_BYTES = 4


class Integers(Transform):
    """Whole numbers of a few bits, with a scale for each vector."""

    name = "int"
    title = "Integers"
    meaning = "bits of each number, 8 as databases offer"
    knowledge = "public"
    threat = "Made to save room, not to hide. Whoever has the vectors sees them a little less exactly."

    @classmethod
    def problem_with(cls, value: float, dim: int) -> str | None:
        """Refuse what is no number of bits."""
        return whole(value, 2, 8, "the bits")

    @classmethod
    def fit(cls, value: float, vectors: np.ndarray, generator: np.random.Generator) -> Self:
        """Nothing is learnt."""
        return cls(value, {})

    def apply(self, vectors: np.ndarray, release: int = 0) -> np.ndarray:
        """Round, and scale back."""
        return round_to_bits(vectors, round(self.value))

    def codes(self, vectors: np.ndarray) -> np.ndarray:
        """Return the whole numbers (n, d), int8, that stand for rounded vectors."""
        steps = _steps(vectors, round(self.value))
        return np.asarray(np.round(vectors / steps), dtype=np.int8)

    def layout(self, before: Layout) -> Layout:
        """Return so many bits for each number, and a scale for each vector."""
        return Layout(before.numbers, self.value, _SCALE_BYTES)


class Binary(Transform):
    """Signs only."""

    name = "binary"
    title = "Signs only"
    meaning = ""
    default = 1.0
    knowledge = "public"
    threat = "Made to save room, not to hide. The signs of many numbers still say where a vector points."

    @classmethod
    def fit(cls, value: float, vectors: np.ndarray, generator: np.random.Generator) -> Self:
        """Nothing is learnt."""
        return cls(value, {})

    def apply(self, vectors: np.ndarray, release: int = 0) -> np.ndarray:
        """Keep the signs, at the vector's mean magnitude."""
        return signs_of(vectors)

    def layout(self, before: Layout) -> Layout:
        """Return one bit for each number."""
        return Layout(before.numbers, 1)


class ProductQuantisation(Transform):
    """Parts of the vector, each replaced by the nearest of 256 typical ones."""

    name = "pq"
    title = "Product quantisation"
    meaning = "parts of the vector, one byte each"
    knowledge = "public"
    threat = "Made to save room, not to hide. The table of typical parts is stored beside the vectors."

    @classmethod
    def problem_with(cls, value: float, dim: int) -> str | None:
        """Refuse more parts than there are numbers."""
        return whole(value, 1, dim, "the parts")

    @classmethod
    def fit(cls, value: float, vectors: np.ndarray, generator: np.random.Generator) -> Self:
        """Learn typical parts by k-means."""
        rows = generator.choice(len(vectors), min(_ROWS, len(vectors)), replace=False)
        # As many centres as vectors would store the vectors themselves.
        centres = max(1, min(_CENTRES, len(rows) // 8))
        tables = {}
        for number, part in enumerate(_parts(vectors[rows], round(value))):
            tables[f"part-{number}"] = k_means(part, spread(part, centres, generator), _ROUNDS).astype(np.float32)
        return cls(value, tables)

    def apply(self, vectors: np.ndarray, release: int = 0) -> np.ndarray:
        """Replace each part."""
        parts = []
        for number, part in enumerate(_parts(vectors, round(self.value))):
            table = self.state[f"part-{number}"]
            parts.append(table[nearest_centres(part, table)])
        return np.concatenate(parts, axis=1)

    def layout(self, before: Layout) -> Layout:
        """Return one byte for each part."""
        return Layout(round(self.value), 8)


def round_to_bits(vectors: np.ndarray, bits: int) -> np.ndarray:
    """Round to integers of this many bits; the largest (127 for 8 bits) stands for the vector's largest number."""
    steps = _steps(vectors, bits)
    return np.asarray(np.round(vectors / steps) * steps, dtype=np.float32)


def signs_of(vectors: np.ndarray) -> np.ndarray:
    """Return the signs of vectors, at each vector's mean magnitude."""
    magnitude = np.abs(vectors).mean(axis=1, keepdims=True)
    return np.asarray(np.where(vectors < 0, -magnitude, magnitude), dtype=np.float32)


def _steps(vectors: np.ndarray, bits: int) -> np.ndarray:
    steps = np.abs(vectors).max(axis=1, keepdims=True) / (2 ** (bits - 1) - 1)
    return np.asarray(np.where(steps > 0, steps, 1.0))


def _parts(vectors: np.ndarray, count: int) -> list[np.ndarray]:
    return np.array_split(vectors, count, axis=1)
