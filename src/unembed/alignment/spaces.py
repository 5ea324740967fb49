"""Brings the vectors of a space to the form in which two spaces can be compared. Knows nothing of the other space."""

from dataclasses import dataclass

import numpy as np

from unembed.errors import VectorError
from unembed.measures.vectors import normalise

MINIMUM_VECTORS = 2000
"""A space needs so many different vectors to be aligned without pairs."""

_MOST = 60_000
_COMPONENTS = 128


@dataclass(frozen=True)
class Space:
    """The different vectors of a space, shuffled, and the same vectors by their leading components."""

    vectors: np.ndarray
    """(n, d), centred, of unit norm."""
    reduced: np.ndarray
    """(n, c): coordinates along ``basis``, of unit norm."""
    basis: np.ndarray
    """(d, c): the directions of most variance, the first first."""
    mean: np.ndarray
    """(d,): what was taken off."""
    spread: float
    """Mean distance from ``mean``."""

    def __len__(self) -> int:
        return len(self.vectors)


def make_space(given: np.ndarray, name: str, generator: np.random.Generator) -> Space:
    """Check vectors (n, d) and bring them to a common form; of very many, a random sample is taken.

    ``name`` is what errors call them.
    """
    given = np.asarray(given)
    if given.ndim != 2 or not given.shape[1]:
        raise VectorError(
            f"The {name} vectors have the shape {given.shape}.", "Pass one row per vector: shape (n, dimension)."
        )
    broken = len(given) - int(np.isfinite(given).all(1).sum())
    if broken:
        raise VectorError(
            f"{broken:,} of the {len(given):,} {name} vectors hold NaN or infinity.", "Remove these rows."
        )
    vectors = _different(given[generator.permutation(len(given))].astype(np.float32))
    if len(vectors) < MINIMUM_VECTORS:
        raise VectorError(
            f"The {name} holds {len(vectors):,} different vectors ({len(given):,} in all). Alignment without pairs "
            f"needs at least {MINIMUM_VECTORS:,}; 10,000 or more work better.",
            "Add vectors. Or align with pairs: a few hundred texts whose vectors are known are enough.",
        )
    vectors = vectors[:_MOST]
    mean = vectors.mean(0)
    around = vectors - mean
    centred = normalise(around)
    basis = _leading(centred)
    return Space(centred, normalise(centred @ basis), basis, mean, float(np.linalg.norm(around, axis=1).mean()))


def _different(vectors: np.ndarray) -> np.ndarray:
    """Return the vectors without zero rows and exact repetitions, in their order."""
    vectors = vectors[np.any(vectors != 0, axis=1)]
    first = {row.tobytes(): number for number, row in reversed(list(enumerate(vectors)))}
    return vectors[sorted(first.values())]


def _leading(vectors: np.ndarray) -> np.ndarray:
    """Return the directions of most variance (d, c)."""
    directions: np.ndarray = np.linalg.eigh(vectors.T @ vectors)[1][:, ::-1]
    return directions[:, :_COMPONENTS]
