"""What each kind of the web page's slider does to an array (n, d) of float32, given a physical parameter and a seed."""

from functools import lru_cache

import numpy as np

from unembed.defences.noise import add_gaussian, vector_noise
from unembed.defences.rotations import random_rotation
from unembed.defences.rounding import round_to_bits, signs_of


def keep(vectors: np.ndarray, _parameter: float, _seed: int) -> np.ndarray:
    """Leave the vectors as they are."""
    return vectors


def add_noise(vectors: np.ndarray, ratio: float, seed: int) -> np.ndarray:
    """Add Gaussian noise whose expected length is ``ratio`` times that of the vector.

    A vector's noise is seeded by the vector itself, so that it is the same wherever the vector stands.
    """
    return add_gaussian(vectors, ratio, vector_noise(vectors, [seed]))


def round_to_some_bits(vectors: np.ndarray, bits: float, _seed: int) -> np.ndarray:
    """Round to integers of this many bits."""
    return round_to_bits(vectors, round(bits))


def keep_signs(vectors: np.ndarray, share: float, seed: int) -> np.ndarray:
    """Replace a share of the numbers by the vector's mean magnitude with their signs."""
    dimension = vectors.shape[1]
    chosen = np.random.default_rng(seed).permutation(dimension)[: round(share * dimension)]
    vectors[:, chosen] = signs_of(vectors)[:, chosen]
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
    return random_rotation(dimension, np.random.default_rng(seed))
