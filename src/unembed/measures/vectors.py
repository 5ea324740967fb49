"""How close vectors are."""

import numpy as np


def cosine(recovered: np.ndarray, reference: np.ndarray) -> np.ndarray:
    """Return the cosine of two vectors, or of each row (..., d) of one array with that row of the other."""
    norms = np.linalg.norm(recovered, axis=-1) * np.linalg.norm(reference, axis=-1)
    cosines: np.ndarray = (recovered * reference).sum(-1) / np.maximum(norms, 1e-12)
    return cosines
