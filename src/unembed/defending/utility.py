"""What a search loses by a defence: by judged queries where there are some, else by the neighbours of before."""

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from unembed.defences import Chain
from unembed.measures.vectors import normalise

CUT = 10
"""Results that are looked at."""
_ROWS = 256


@dataclass(frozen=True)
class JudgedVectors:
    """A collection with judgements, as vectors."""

    name: str
    documents: np.ndarray
    """(n, d)."""
    queries: np.ndarray
    """(q, d)."""
    relevant: Sequence[Mapping[int, float]]
    """For each query, the gains of its relevant documents by their numbers."""


@dataclass(frozen=True)
class Searches:
    """One value for each query, and what a search costs."""

    values: dict[str, np.ndarray]
    """By measure: ``ndcg@10`` and ``recall@10``, or ``neighbours@10``."""
    milliseconds: float
    """For each query: its defence and the comparison with all documents, on this machine."""
    forms: int
    """How many searches stand for one query."""


def search_judged(judged: JudgedVectors, chain: Chain) -> Searches:
    """Search a defended collection with its judged queries."""
    found, milliseconds, forms = _search(chain.apply(judged.documents), judged.queries, chain)
    return Searches(
        {
            f"ndcg@{CUT}": np.array([ndcg(row, gains) for row, gains in zip(found, judged.relevant, strict=True)]),
            f"recall@{CUT}": np.array([recall(row, gains) for row, gains in zip(found, judged.relevant, strict=True)]),
        },
        milliseconds,
        forms,
    )


def search_neighbours(vectors: np.ndarray, asked: np.ndarray, chain: Chain) -> Searches:
    """Compare the neighbours of some vectors in the defended collection with those of before.

    Args:
        vectors: (n, d) the collection.
        asked: (q,) the numbers of those whose neighbours are looked for.
        chain: the defence.
    """
    before, _, _ = _search(vectors, vectors[asked], Chain((), vectors.shape[1]), but=asked)
    after, milliseconds, forms = _search(chain.apply(vectors), vectors[asked], chain, but=asked)
    shares = [len(set(old) & set(new)) / max(1, len(old)) for old, new in zip(before, after, strict=True)]
    return Searches({f"neighbours@{CUT}": np.array(shares)}, milliseconds, forms)


def _search(
    documents: np.ndarray, queries: np.ndarray, chain: Chain, but: np.ndarray | None = None
) -> tuple[list[list[int]], float, int]:
    """Return the nearest documents of each query, best first, the time for each query, and its number of forms."""
    directions = normalise(documents)
    count = min(CUT, len(documents) - (but is not None))
    found: list[list[int]] = []
    begun, forms = time.perf_counter(), 1
    for start in range(0, len(queries), _ROWS):
        asked = normalise(chain.queries(queries[start : start + _ROWS]))
        forms = asked.shape[1]
        nearness = (asked @ directions.T).max(1)
        if but is not None:
            nearness[np.arange(len(nearness)), but[start : start + _ROWS]] = -np.inf
        nearest = np.argpartition(-nearness, count - 1, axis=1)[:, :count]
        order = np.argsort(-np.take_along_axis(nearness, nearest, 1), axis=1, kind="stable")
        found += np.take_along_axis(nearest, order, 1).tolist()
    return found, 1000.0 * (time.perf_counter() - begun) / max(1, len(queries)), forms


def ndcg(found: Sequence[int], gains: Mapping[int, float]) -> float:
    """Return nDCG of results, best first, with linear gains, as trec_eval computes it."""
    discounts = 1.0 / np.log2(np.arange(2, CUT + 2))
    gained = sum(gains.get(document, 0.0) * discount for document, discount in zip(found, discounts, strict=False))
    ideal = sum(
        gain * discount for gain, discount in zip(sorted(gains.values(), reverse=True), discounts, strict=False)
    )
    return float(gained / ideal)


def recall(found: Sequence[int], gains: Mapping[int, float]) -> float:
    """Return the share of relevant documents among the results."""
    return sum(document in gains for document in found) / len(gains)
