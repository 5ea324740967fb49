"""Attacks on a secret rotation: with the texts of some vectors, or without any. Knows vectors, no texts.

Whoever knows the text of a stored vector can embed it, and has a pair: the vector as it was, and as it was turned.
"""

from collections.abc import Callable

import numpy as np

from unembed.alignment import align_unpaired
from unembed.clusters import k_means, nearest_centres, spread
from unembed.measures.vectors import normalise

Map = Callable[[np.ndarray], np.ndarray]
_ROUNDS = 20
# Of singular values, relative to the largest: below it a direction is rounding.
_SMALLEST = 1e-9


def fit_rotation(defended: np.ndarray, original: np.ndarray) -> np.ndarray:
    """Return the best rotation (k, d) from pairs (p, k) and (p, d): Procrustes.

    Fewer pairs than dimensions say nothing about the directions in which none of them lies. Those become zero.
    """
    pairs = (normalise(side).astype(np.float64) for side in (defended, original))
    left, spectrum, right = np.linalg.svd(next(pairs).T @ next(pairs), full_matrices=False)
    # The singular values of p pairs are p at most; what is beyond them, or next to zero, is rounding.
    known = (spectrum > _SMALLEST * spectrum[0]) & (np.arange(len(spectrum)) < len(defended))
    return np.asarray(left[:, known] @ right[known], dtype=np.float32)


def with_pairs(defended: np.ndarray, original: np.ndarray) -> Map:
    """Undo one rotation of all vectors."""
    matrix = fit_rotation(defended, original)
    return lambda vectors: vectors @ matrix


def with_pairs_by_cell(
    defended: np.ndarray, original: np.ndarray, stored: np.ndarray, cells: int, generator: np.random.Generator
) -> Map:
    """Undo a rotation per cell: turned cells are clusters again, and the pairs in each give away its key.

    Args:
        defended: (p, k) of the pairs.
        original: (p, d) of the pairs.
        stored: all defended vectors (n, k), in which the cells are found.
        cells: how many there are.
        generator: draws the first centres.
    """
    directions = normalise(stored)
    centres = k_means(directions, spread(directions, min(cells, len(stored)), generator), _ROUNDS)
    owners = nearest_centres(normalise(defended), centres)
    matrices = {cell: fit_rotation(defended[owners == cell], original[owners == cell]) for cell in np.unique(owners)}
    # For a cell without a pair: what all pairs together say, which is little.
    otherwise = fit_rotation(defended, original)

    def undo(vectors: np.ndarray) -> np.ndarray:
        owners = nearest_centres(normalise(vectors), centres)
        restored = np.empty((len(vectors), original.shape[1]), dtype=np.float32)
        for cell in np.unique(owners):
            restored[owners == cell] = vectors[owners == cell] @ matrices.get(cell, otherwise)
        return restored

    return undo


def without_pairs(stored: np.ndarray, own: np.ndarray, seed: int) -> Map:
    """Align all defended vectors (n, k) with vectors (m, d) of the attacker's own texts.

    Raises:
        AlignmentError: no map was found that deserves trust.
        VectorError: there are too few vectors.
    """
    return align_unpaired(normalise(stored), normalise(own), seed=seed).there.map_array
