"""Which chains are measured when nobody names one: every defence, from weak to strong. Knows no vectors."""

from collections.abc import Iterator, Mapping, Sequence

import numpy as np

_NOISE = (0.1, 0.2, 0.4, 0.7, 1.0)
# Epsilon for each dimension; the noise is 1 / this long.
_EPSILON = (8.0, 4.0, 2.0, 1.0, 0.5)
_MIX = (0.1, 0.2, 0.4, 0.6, 0.8)
_KEPT = (2 / 3, 1 / 2, 1 / 3, 1 / 6, 1 / 12)
_PARTS = (1 / 2, 1 / 4, 1 / 8, 1 / 16, 1 / 32)
_CELLS = (4, 8, 16, 32, 64)


def families(dim: int) -> dict[str, list[str]]:
    """Return the chains of each defence for vectors of ``dim`` numbers, the weakest first."""
    kept = [max(1, round(share * dim)) for share in _KEPT]
    return {
        "int": [f"int{bits}" for bits in (8, 6, 4, 3, 2)],
        "binary": ["binary", *(f"truncate:{count},binary" for count in kept[:4])],
        "truncate": [f"truncate:{count}" for count in kept],
        "pca": [f"pca:{count}" for count in kept],
        "learned": [f"learned:{count}" for count in kept],
        "noise": [f"noise:{ratio:g}" for ratio in _NOISE],
        "rotate": ["rotate"],
        "mix": [f"mix:{weight:g}" for weight in _MIX],
        "rotate-cells": [f"rotate-cells:{cells}" for cells in _CELLS],
        "laplace": [f"laplace:{each * dim:g}" for each in _EPSILON],
        "pq": [f"pq:{max(1, round(share * dim))}" for share in _PARTS],
        "noise-fresh": [f"noise-fresh:{ratio:g}" for ratio in _NOISE],
    }


def choose(chains: Sequence[str], count: int) -> list[str]:
    """Return ``count`` of the strengths, spread evenly: one is the middle, two are the ends."""
    if count >= len(chains):
        return list(chains)
    if count == 1:
        return [chains[len(chains) // 2]]
    return [chains[place] for place in np.linspace(0, len(chains) - 1, count).round().astype(int)]


def in_turn(chains: Mapping[str, Sequence[str]]) -> Iterator[tuple[str, str]]:
    """Yield each defence with one of its strengths, the middle ones of all first: a run that is stopped has some."""
    most = max(map(len, chains.values()), default=0)
    for place in sorted(range(most), key=lambda place: abs(place - (most - 1) / 2)):
        for family, each in chains.items():
            shift = place - (most - len(each)) // 2  # those with fewer strengths stand in the middle
            if 0 <= shift < len(each):
                yield family, each[shift]
