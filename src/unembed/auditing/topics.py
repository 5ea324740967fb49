"""Topics: clusters of a store's vectors, labelled with the words that stand out in them. No texts are decoded."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from unembed.auditing.words import WordReader
from unembed.clusters import k_means, nearest_centres, spread
from unembed.errors import VectorError
from unembed.measures.vectors import normalise

_ROUNDS = 25
# Vectors that the centres are computed from; the others are then given to the nearest centre.
_FITTED = 50_000
_BLOCK = 4096


@dataclass(frozen=True)
class Topic:
    """A cluster of vectors."""

    size: int
    words: list[str]
    """Those that its vectors name more often than other vectors do, best first."""
    nearest: list[int]
    """Rows of the vectors nearest to its centre, nearest first."""


def find_topics(
    reader: WordReader, vectors: np.ndarray, clusters: int, *, words: int = 8, nearest: int = 5, seed: int = 0
) -> list[Topic]:
    """Group vectors (n, d) by k-means on the sphere, and label each group; the largest comes first."""
    if clusters > len(vectors):
        raise VectorError(f"There are {len(vectors):,} vectors for {clusters:,} clusters.", "Ask for fewer `clusters`.")
    random = np.random.default_rng(seed)
    scaled = normalise(vectors)
    fitted = scaled if len(scaled) <= _FITTED else scaled[random.choice(len(scaled), _FITTED, replace=False)]
    centres = k_means(fitted, spread(fitted, clusters, random), _ROUNDS)
    blocks = [scaled[start : start + _BLOCK] for start in range(0, len(scaled), _BLOCK)]
    owners = np.concatenate([nearest_centres(block, centres) for block in blocks])
    named = _count_words(reader, vectors, owners, clusters)
    labels = _distinctive(named, np.bincount(owners, minlength=clusters))
    topics = []
    for cluster in range(clusters):
        rows = np.flatnonzero(owners == cluster)
        if len(rows):
            closest = rows[np.argsort(-(scaled[rows] @ centres[cluster]), kind="stable")[:nearest]]
            label = [reader.words[index] for index in labels[cluster][:words]]
            topics.append(Topic(len(rows), label, closest.tolist()))
    return sorted(topics, key=lambda topic: -topic.size)


def _count_words(reader: WordReader, vectors: np.ndarray, owners: np.ndarray, clusters: int) -> np.ndarray:
    """Return how many vectors of each cluster name each word: (clusters, words)."""
    counts = np.zeros((clusters, len(reader.words)), dtype=np.int64)
    for start in range(0, len(vectors), _BLOCK):
        named = reader.read(vectors[start : start + _BLOCK]).indices
        np.add.at(counts, (np.repeat(owners[start : start + _BLOCK], named.shape[1]), named.ravel()), 1)
    return counts


def _distinctive(counts: np.ndarray, sizes: np.ndarray) -> Sequence[np.ndarray]:
    """Return for each cluster the words that it names, ordered by how much more often than all vectors together."""
    share = counts / np.maximum(sizes, 1)[:, None]
    overall = counts.sum(0) / max(1, int(sizes.sum()))
    # A word counts by how common it is here, times how much commoner than elsewhere.
    scores = share * np.log((share + 1e-9) / (overall + 1e-9))
    orders = np.argsort(-scores, axis=1, kind="stable")
    return [order[counts[cluster, order] > 0] for cluster, order in enumerate(orders)]
