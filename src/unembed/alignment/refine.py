"""Improves a map between two spaces by matching vectors under it, again and again. Knows nothing of the first map."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from unembed.alignment.anchors import orthogonal
from unembed.measures.vectors import normalise

_ROWS = 512


@dataclass(frozen=True)
class Refinement:
    """How long a map is refined, and with what."""

    rounds: int
    sample: int
    """Vectors of the source that are matched in a round."""
    pool: int
    """Targets, drawn anew in each round, among which their neighbours are looked for."""
    keep: float
    """Share of the last round's cross-covariance that stays: little is fast, much is exact."""
    neighbours: int = 10
    """Targets whose mean stands in for a vector's partner."""


def refine(
    source: np.ndarray,
    target: np.ndarray,
    start: np.ndarray,
    how: Refinement,
    generator: np.random.Generator,
    advance: Callable[[], None],
) -> np.ndarray:
    """Map a sample, take the mean of each vector's nearest targets as its partner, fit the map again, and so on.

    No vector has its true partner among the targets, but the mean of those around it is a good stand-in.

    Args:
        source: centred unit vectors (n1, d1).
        target: centred unit vectors (n2, d2).
        start: the map (d1, d2) to begin with.
        how: rounds and samples.
        generator: draws the samples.
        advance: called after each round.
    """
    matrix, covariance = start, np.zeros_like(start)
    for _ in range(how.rounds):
        chosen, among = draw(source, how.sample, generator), draw(target, how.pool, generator)
        nearness = normalise(chosen @ matrix) @ among.T
        nearness -= _crowding(nearness) / 2
        stand_ins = _mean_of_nearest(nearness, among, how.neighbours)
        covariance = how.keep * covariance + (1 - how.keep) * chosen.T @ stand_ins
        matrix = orthogonal(covariance)
        advance()
    return matrix


def stand_ins(mapped: np.ndarray, target: np.ndarray, neighbours: int = 10) -> np.ndarray:
    """Return for each mapped unit vector the mean of its nearest targets, the nearer ones counting more."""
    parts = []
    for start in range(0, len(mapped), _ROWS):
        nearness = mapped[start : start + _ROWS] @ target.T
        parts.append(_mean_of_nearest(nearness, target, neighbours, power=4))
    return np.concatenate(parts)


def _mean_of_nearest(nearness: np.ndarray, target: np.ndarray, neighbours: int, power: int = 0) -> np.ndarray:
    """Return the mean of the targets with the highest values in each row, weighted by a power of these."""
    nearest = np.argpartition(-nearness, neighbours - 1, axis=1)[:, :neighbours]
    weights = np.maximum(np.take_along_axis(nearness, nearest, 1), 1e-6) ** power
    means: np.ndarray = np.einsum("nk,nkd->nd", weights / weights.sum(1, keepdims=True), target[nearest])
    return means


def draw(vectors: np.ndarray, count: int, generator: np.random.Generator) -> np.ndarray:
    """Return some rows at random, or all where there are no more."""
    return vectors[generator.choice(len(vectors), min(count, len(vectors)), replace=False)]


def _crowding(nearness: np.ndarray, neighbours: int = 10) -> np.ndarray:
    """Return how near each target is to the mapped vectors nearest to it: some are near to everything (CSLS)."""
    neighbours = min(neighbours, len(nearness))
    level: np.ndarray = np.partition(nearness, -neighbours, axis=0)[-neighbours:].mean(0)
    return level


def closeness(mapped: np.ndarray, target: np.ndarray) -> float:
    """Return the mean cosine of mapped vectors with their nearest targets: the better the map, the higher."""
    return float((mapped @ target.T).max(1).mean())


def mutual_share(mapped: np.ndarray, target: np.ndarray) -> float:
    """Return the share of mapped vectors that are the nearest of their own nearest target."""
    nearness = mapped @ target.T
    back = nearness.argmax(0)
    return float((back[nearness.argmax(1)] == np.arange(len(mapped))).mean())
