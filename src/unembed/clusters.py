"""k-means, in a few lines of NumPy. Knows vectors, and nothing of what they stand for."""

import numpy as np


def spread(vectors: np.ndarray, clusters: int, generator: np.random.Generator) -> np.ndarray:
    """Choose vectors far from one another to start clusters from (k-means++)."""
    squares = (vectors**2).sum(1)
    centres = [vectors[generator.integers(len(vectors))]]
    nearest = np.full(len(vectors), np.inf, dtype=vectors.dtype)
    for _ in range(clusters - 1):
        distances = squares - 2 * vectors @ centres[-1] + (centres[-1] ** 2).sum()
        nearest = np.minimum(nearest, np.maximum(distances, 0))
        reach = np.cumsum(nearest, dtype=np.float64)
        row = np.searchsorted(reach, generator.random() * reach[-1])
        centres.append(vectors[min(int(row), len(vectors) - 1)])
    return np.stack(centres)


def k_means(vectors: np.ndarray, centres: np.ndarray, rounds: int) -> np.ndarray:
    """Move centres to the means of the vectors nearest to them; a centre that loses all of its vectors stays."""
    for _ in range(rounds):
        owners = nearest_centres(vectors, centres)
        counts = np.bincount(owners, minlength=len(centres))
        membership = np.zeros((len(centres), len(vectors)), dtype=vectors.dtype)
        membership[owners, np.arange(len(vectors))] = 1
        means = membership @ vectors / np.maximum(counts, 1)[:, None]
        centres = np.where(counts[:, None] > 0, means, centres)
    return centres


def nearest_centres(vectors: np.ndarray, centres: np.ndarray) -> np.ndarray:
    """Return the number of the centre nearest to each vector: the one with the largest x.c - |c|^2 / 2."""
    owners: np.ndarray = (vectors @ centres.T - (centres**2).sum(1) / 2).argmax(1)
    return owners
