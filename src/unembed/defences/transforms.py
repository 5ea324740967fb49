"""What each defence does to an array (n, d) of float32. Each takes a physical parameter and a seed."""

import hashlib
from functools import lru_cache

import numpy as np


def keep(vectors: np.ndarray, _parameter: float, _seed: int) -> np.ndarray:
    """Leave the vectors as they are."""
    return vectors


def add_noise(vectors: np.ndarray, ratio: float, seed: int) -> np.ndarray:
    """Add Gaussian noise whose expected length is ``ratio`` times that of the vector.

    A vector's noise is seeded by the vector itself, so that it is the same wherever the vector stands.
    """
    noise = np.empty_like(vectors)
    for row, vector in enumerate(vectors):
        digest = hashlib.sha256(vector.tobytes()).digest()[:16]
        random = np.random.default_rng([seed, int.from_bytes(digest, "little")])
        noise[row] = random.normal(size=vectors.shape[1])
    lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
    return np.asarray(vectors + noise * (ratio * lengths / np.sqrt(vectors.shape[1])))


def round_to_bits(vectors: np.ndarray, bits: float, _seed: int) -> np.ndarray:
    """Round to integers of this many bits; the largest (127 for 8 bits) stands for the vector's largest number."""
    largest = np.abs(vectors).max(axis=1, keepdims=True)
    step = largest / (2 ** (round(bits) - 1) - 1)
    return np.asarray(np.round(vectors / np.where(step > 0, step, 1.0)) * step)


def keep_signs(vectors: np.ndarray, share: float, seed: int) -> np.ndarray:
    """Replace a share of the numbers by the vector's mean magnitude with their signs."""
    dimension = vectors.shape[1]
    chosen = np.random.default_rng(seed).permutation(dimension)[: round(share * dimension)]
    magnitude = np.abs(vectors).mean(axis=1, keepdims=True)
    vectors[:, chosen] = np.where(vectors[:, chosen] < 0, -magnitude, magnitude)
    return vectors


def truncate(vectors: np.ndarray, share: float, _seed: int) -> np.ndarray:
    """Set the last share of the numbers to zero; one is always kept."""
    kept = max(1, round((1.0 - share) * vectors.shape[1]))
    vectors[:, kept:] = 0.0
    return vectors


def rotate(vectors: np.ndarray, degrees: float, seed: int) -> np.ndarray:
    """Turn all vectors by an angle: lengths and distances stay.

    In a random basis, every pair of directions is turned in its plane; if their number is odd, one stays as it is.
    """
    dimension = vectors.shape[1]
    basis = _random_basis(dimension, seed)
    coordinates = vectors @ basis
    half = dimension // 2
    first, second = coordinates[:, :half].copy(), coordinates[:, half : 2 * half].copy()
    cosine, sine = np.cos(np.radians(degrees)), np.sin(np.radians(degrees))
    coordinates[:, :half] = cosine * first - sine * second
    coordinates[:, half : 2 * half] = sine * first + cosine * second
    return np.asarray(coordinates @ basis.T)


@lru_cache(maxsize=4)  # a decomposition takes longer than many rotations
def _random_basis(dimension: int, seed: int) -> np.ndarray:
    """Return an orthogonal matrix (d, d), uniformly at random."""
    factor, triangle = np.linalg.qr(np.random.default_rng(seed).normal(size=(dimension, dimension)))
    return np.asarray(factor * np.sign(np.diag(triangle)))
