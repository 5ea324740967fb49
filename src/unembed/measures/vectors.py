"""How close vectors are, and which of them cannot be an encoder's."""

import numpy as np

# No encoder's vectors are shorter or longer than this, whatever they were multiplied by for storage.
SHORTEST, LONGEST = 1e-9, 1e9


def cosine(recovered: np.ndarray, reference: np.ndarray) -> np.ndarray:
    """Return the cosine of two vectors, or of each row (..., d) of one array with that row of the other."""
    norms = np.linalg.norm(recovered, axis=-1) * np.linalg.norm(reference, axis=-1)
    cosines: np.ndarray = (recovered * reference).sum(-1) / np.maximum(norms, 1e-12)
    return cosines


def normalise(vectors: np.ndarray) -> np.ndarray:
    """Return vectors (..., d) at length one, in float32."""
    scaled = vectors / np.maximum(np.linalg.norm(vectors, axis=-1, keepdims=True), 1e-12)
    result: np.ndarray = scaled.astype(np.float32, copy=False)
    return result


def find_faults(vectors: np.ndarray) -> dict[str, np.ndarray]:
    """Return what can be wrong with vectors (n, d), and which of them have that fault; none has two."""
    finite, something = np.isfinite(vectors).all(axis=1), vectors.any(axis=1)
    with np.errstate(over="ignore", invalid="ignore"):
        lengths = np.linalg.norm(vectors.astype(np.float64), axis=1)
    return {
        "not finite": np.logical_not(finite),
        "all zeros": np.logical_not(something),
        f"shorter than {SHORTEST:g}": finite & something & (lengths < SHORTEST),
        f"longer than {LONGEST:g}": finite & (lengths > LONGEST),
    }
