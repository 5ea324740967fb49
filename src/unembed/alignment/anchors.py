"""A first map between two spaces, from clusters that lie alike in both. Knows nothing of texts, files or encoders.

Both sides hold different texts, so no vector has a partner. Their clusters do: topics lie near and far from one
another in much the same way, whichever encoder looks at them. So each side is clustered, and the clusters are matched
such that their similarities agree (quadratic assignment). One clustering is a weak witness, and some are matched
wrongly. Many are drawn, each from a sample of its own, and those that agree with one another are believed.
"""

import numpy as np

from unembed.clusters import k_means, spread
from unembed.measures.vectors import normalise

_CLUSTERINGS = 16
_CLUSTERS = 24
_SAMPLE = 3000
_RESTARTS = 100
_WITNESSES = 500


def first_map(
    source: np.ndarray, target: np.ndarray, generator: np.random.Generator, *, clusterings: int = _CLUSTERINGS
) -> np.ndarray:
    """Return a first map (d1, d2), orthogonal as far as the dimensions allow, between centred unit vectors."""
    witnesses = source[generator.choice(len(source), min(_WITNESSES, len(source)), replace=False)]
    maps, places = [], []
    for _ in range(clusterings):
        left, right = cluster(source, _CLUSTERS, generator), cluster(target, _CLUSTERS, generator)
        covariance = left.T @ right[match(similarities(left), similarities(right), generator)]
        maps.append(covariance / np.linalg.norm(covariance))
        places.append(normalise(witnesses @ orthogonal(covariance)))
    weights = consensus(np.stack(places))
    return orthogonal(np.tensordot(weights, np.stack(maps), 1))


def cluster(
    vectors: np.ndarray, clusters: int, generator: np.random.Generator, *, rounds: int = 12, sample: int = _SAMPLE
) -> np.ndarray:
    """Return the centroids (clusters, d) of a sample of unit vectors, by k-means."""
    chosen = generator.choice(len(vectors), min(sample, len(vectors)), replace=False)
    return k_means(vectors[chosen], spread(vectors[chosen], clusters, generator), rounds)


def similarities(centres: np.ndarray) -> np.ndarray:
    """Return the centroids' inner products around their mean, (k, k), of norm one: encoders differ in scale."""
    around = centres - centres.mean(0)
    products: np.ndarray = (around @ around.T).astype(np.float64)
    products /= np.linalg.norm(products)
    return products


def match(left: np.ndarray, right: np.ndarray, generator: np.random.Generator, restarts: int = _RESTARTS) -> np.ndarray:
    """Return the permutation p that makes ``right[p][:, p]`` most like ``left``: the best of many local searches.

    Each search starts from a random permutation and swaps the pair that gains most until no swap gains. All searches
    advance together. ``scipy.optimize.quadratic_assignment`` (2opt) does the same, one at a time and much slower.
    """
    size = len(left)
    permutations = np.stack([generator.permutation(size) for _ in range(restarts)])
    running = np.arange(restarts)
    while len(running):
        here = permutations[running]
        gains = _swap_gains(left, right[here[:, :, None], here[:, None, :]])
        best = gains.reshape(len(here), -1).argmax(1)
        first, second = np.divmod(best, size)
        rows = np.arange(len(here))
        better = gains[rows, first, second] > 1e-9
        running, first, second = running[better], first[better], second[better]
        swapped = permutations[running, first]
        permutations[running, first] = permutations[running, second]
        permutations[running, second] = swapped
    scores = (left * right[permutations[:, :, None], permutations[:, None, :]]).sum((1, 2))
    found: np.ndarray = permutations[scores.argmax()]
    return found


def _swap_gains(left: np.ndarray, permuted: np.ndarray) -> np.ndarray:
    """Return what each swap of two places adds to ``(left * permuted).sum()``: (searches, k, k); all symmetric."""
    products = left @ permuted  # products[r, s] = sum over k of left[r, k] permuted[k, s]
    own = np.diagonal(products, axis1=1, axis2=2)
    total = products + products.transpose(0, 2, 1) - own[:, :, None] - own[:, None, :]
    left_own = np.diag(left)
    own = np.diagonal(permuted, axis1=1, axis2=2)
    # The sum above runs over all k. The terms of k = r and k = s do not belong to it ...
    total -= (left_own[:, None] - left) * (permuted - own[:, :, None])
    total -= (left - left_own[None, :]) * (own[:, None, :] - permuted)
    # ... and the two diagonal entries change places.
    gains: np.ndarray = 2 * total + (left_own[:, None] - left_own) * (own[:, None, :] - own[:, :, None])
    return gains


def consensus(places: np.ndarray) -> np.ndarray:
    """Return a weight for each map (maps, n, d) by how much it agrees with the others about where vectors go.

    Maps from wrong matchings agree with nobody: the leading eigenvector of all pairwise agreements leaves them out.
    """
    flat = places.reshape(len(places), -1)
    agreements = np.maximum(flat @ flat.T / places.shape[1], 0)
    weights = np.abs(np.linalg.eigh(agreements)[1][:, -1])
    shares: np.ndarray = weights**2 / (weights**2).sum()
    return shares


def orthogonal(covariance: np.ndarray) -> np.ndarray:
    """Return the nearest map with orthonormal rows or columns (Procrustes): both spaces keep their angles."""
    left, _, right = np.linalg.svd(covariance, full_matrices=False)
    turned: np.ndarray = left @ right
    return turned
