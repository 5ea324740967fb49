"""What every transform can do: the common form of all defences. Knows no concrete one.

A transform is first fitted: it draws its secret, or learns what it needs from the vectors of a collection. Then it is a
value and some arrays, which can be written to a file.
"""

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import ClassVar, Literal, Self

import numpy as np

Knowledge = Literal["public", "random", "secret"]
"""What an attacker knows of a transform.

``public``: all of it, and can apply it to vectors of his own. ``random``: how the numbers are drawn, but not the
numbers. ``secret``: what kind it is, but not its key.
"""
FLOAT_BITS = 32


@dataclass(frozen=True)
class Layout:
    """How much room a vector takes in storage."""

    numbers: int
    bits: float = FLOAT_BITS
    """For each number."""
    extra_bytes: int = 0
    """For each vector, for example a scale."""

    @property
    def bytes(self) -> int:
        """Bytes for each vector, rounded up."""
        return int(-(-self.numbers * self.bits // 8)) + self.extra_bytes


@dataclass(frozen=True)
class Transform(ABC):
    """One thing that is done to vectors, fitted: its value, and the arrays that it drew or learnt."""

    value: float
    state: dict[str, np.ndarray]

    name: ClassVar[str]
    """As it is typed."""
    title: ClassVar[str]
    meaning: ClassVar[str]
    """Of the value; empty if there is none."""
    default: ClassVar[float | None] = None
    """The value if none is given; None if one must be given."""
    knowledge: ClassVar[Knowledge]
    fresh: ClassVar[bool] = False
    """Whether a second release of the same vectors looks different."""
    narrows: ClassVar[bool] = False
    """Whether the value is how many numbers are left of each vector."""
    threat: ClassVar[str]
    """From whom it hides what, in a sentence or two."""

    @classmethod
    def problem_with(cls, value: float, dim: int) -> str | None:
        """Say what is wrong with a value for vectors of ``dim`` numbers; None if nothing is."""
        return None

    @classmethod
    @abstractmethod
    def fit(cls, value: float, vectors: np.ndarray, generator: np.random.Generator) -> Self:
        """Draw or learn what the transform needs, for a collection of vectors (n, d)."""

    @abstractmethod
    def apply(self, vectors: np.ndarray, release: int = 0) -> np.ndarray:
        """Return defended copies (n, k), float32.

        Args:
            vectors: (n, d).
            release: how often these vectors were released before. Only fresh noise depends on it.
        """

    def queries(self, vectors: np.ndarray) -> np.ndarray:
        """Return what a search compares with defended vectors: (n, p, k). Of several forms, the nearest counts."""
        return vectors[:, None]

    def undo(self, vectors: np.ndarray) -> np.ndarray:
        """Return vectors (n, d) as they were before, as far as the transform's arrays tell.

        Exact for a secret transform. What others have lost stays lost; only the dimension is restored.
        """
        return vectors

    def redraw(self, generator: np.random.Generator) -> Self:
        """Return it with other random numbers of the same kind; the same, if it has none or they are a key."""
        return self

    def layout(self, before: Layout) -> Layout:
        """Return how defended vectors are stored, given how they were before; floats unless it rounds."""
        return Layout(before.numbers)


def whole(value: float, least: int, most: int, what: str) -> str | None:
    """Say that a value is not a whole number in a range; None if it is."""
    if least <= value <= most and value == int(value):
        return None
    return f"{what} must be a whole number from {least} to {most}, not {value:g}"


def secret_seed(generator: np.random.Generator) -> np.ndarray:
    """Draw 128 bits that nobody can guess if the generator was seeded by the system."""
    return generator.integers(2**32, size=4, dtype=np.uint32)
