"""Defences that add random numbers. An attacker knows how they are drawn, but not the numbers themselves."""

import hashlib
from typing import Self

import numpy as np

from unembed.defences.transform import Transform, secret_seed


class _Noise(Transform):
    knowledge = "random"

    @classmethod
    def fit(cls, value: float, vectors: np.ndarray, generator: np.random.Generator) -> Self:
        """Draw the seed of the noise. Whoever knows it can subtract fresh noise, so it is a secret."""
        return cls(value, {"seed": secret_seed(generator)})

    def redraw(self, generator: np.random.Generator) -> Self:
        """Draw another seed."""
        return self.fit(self.value, np.empty((0, 0)), generator)

    @property
    def _seed(self) -> list[int]:
        return [int(number) for number in self.state["seed"]]


class Noise(_Noise):
    """Gaussian noise that is the same whenever the same vector is released."""

    name = "noise"
    title = "Gaussian noise"
    meaning = "length of the noise in units of the vector's own"
    threat = (
        "Against whoever copies the vectors. The noise depends on the vector and a secret seed, so a second copy of "
        "the same vector tells nothing new."
    )

    @classmethod
    def problem_with(cls, value: float, dim: int) -> str | None:
        """Refuse a length that is not positive."""
        return None if 0 < value < np.inf else f"the noise must be longer than 0, not {value:g}"

    def apply(self, vectors: np.ndarray, release: int = 0) -> np.ndarray:
        """Add noise that is seeded by each vector."""
        return add_gaussian(vectors, self.value, vector_noise(vectors, self._seed))


class FreshNoise(_Noise):
    """Gaussian noise that is drawn anew for each release."""

    name = "noise-fresh"
    fresh = True
    title = "Gaussian noise, fresh"
    meaning = Noise.meaning
    threat = (
        "Against whoever copies the vectors once. Each release has new noise: whoever collects k releases of a vector "
        "can average them, and the noise shrinks by the square root of k."
    )

    @classmethod
    def problem_with(cls, value: float, dim: int) -> str | None:
        """Refuse a length that is not positive."""
        return Noise.problem_with(value, dim)

    def apply(self, vectors: np.ndarray, release: int = 0) -> np.ndarray:
        """Add noise that depends on the release and the position of each vector."""
        drawn = np.random.default_rng([*self._seed, release]).normal(size=vectors.shape)
        return add_gaussian(vectors, self.value, drawn)


class Laplace(_Noise):
    """The Laplace mechanism of metric differential privacy, for the Euclidean distance."""

    name = "laplace"
    fresh = True
    title = "Laplace noise (metric differential privacy)"
    meaning = "epsilon, for vectors of length 1; d / epsilon is the mean length of the noise"
    threat = (
        "It promises that whoever sees one release cannot tell two vectors at a distance t apart by more than a factor "
        "of exp(epsilon t). It does not promise that a text is hidden. At an epsilon that leaves a search usable that "
        "factor is astronomic, each further release multiplies it, and texts near to one another stay near."
    )

    @classmethod
    def problem_with(cls, value: float, dim: int) -> str | None:
        """Refuse an epsilon that is not positive."""
        return None if 0 < value < np.inf else f"epsilon must be greater than 0, not {value:g}"

    def apply(self, vectors: np.ndarray, release: int = 0) -> np.ndarray:
        """Add a random direction whose length has the density of a gamma distribution."""
        random = np.random.default_rng([*self._seed, release])
        directions = random.normal(size=vectors.shape)
        directions /= np.linalg.norm(directions, axis=1, keepdims=True)
        lengths = random.gamma(vectors.shape[1], 1.0 / self.value, size=(len(vectors), 1))
        # Epsilon is meant for vectors of length 1; others are moved in proportion.
        scale = np.linalg.norm(vectors, axis=1, keepdims=True)
        return np.asarray(vectors + scale * lengths * directions, dtype=np.float32)


def vector_noise(vectors: np.ndarray, seed: list[int]) -> np.ndarray:
    """Draw noise (n, d) of standard deviation 1; each row depends on its vector and the seed alone."""
    noise = np.empty_like(vectors)
    for row, vector in enumerate(vectors):
        digest = hashlib.sha256(vector.tobytes()).digest()[:16]
        random = np.random.default_rng([*seed, int.from_bytes(digest, "little")])
        noise[row] = random.normal(size=vectors.shape[1])
    return noise


def add_gaussian(vectors: np.ndarray, ratio: float, noise: np.ndarray) -> np.ndarray:
    """Add noise (n, d) of standard deviation 1, scaled to ``ratio`` times the length of each vector."""
    lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
    return np.asarray(vectors + noise * (ratio * lengths / np.sqrt(vectors.shape[1])), dtype=np.float32)
