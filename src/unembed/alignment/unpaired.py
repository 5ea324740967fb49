"""Aligns two embedding spaces without a single pair: vectors of an encoder, and vectors of ours for other texts.

The way is that of mini-vec2vec (Dar 2025, arXiv:2510.02348): matched clusters, then refinement. What is new here is the
check. Everything is estimated twice, from halves that share no vector, with random numbers of their own. Two maps that
found the truth send a vector to the same place; maps that found none do not. Where they disagree, nothing is returned.
Knows nothing of texts, files or encoders.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from unembed.alignment.anchors import first_map, orthogonal
from unembed.alignment.fitting import ridge
from unembed.alignment.maps import SpaceMap
from unembed.alignment.refine import Refinement, closeness, draw, mutual_share, refine, stand_ins
from unembed.alignment.spaces import Space, make_space
from unembed.errors import AlignmentError
from unembed.measures.vectors import normalise
from unembed.progress import OnProgress

MINIMUM_AGREEMENT = 0.5
"""Below this the map is refused. docs/adapting-unpaired.md says how it was measured."""

_HELD_OUT = 1000
# An estimate makes several starts, and the best of them climbs on. This happens in the leading components, where the
# spaces are most alike; the last steps average many samples. The final map is refined in all dimensions.
_STARTS = 4
_START = Refinement(rounds=20, sample=500, pool=3000, keep=0.5)
_CLIMB = Refinement(rounds=60, sample=500, pool=3000, keep=0.5)
_SETTLE = Refinement(rounds=20, sample=500, pool=3000, keep=0.9)
_FINISH = Refinement(rounds=10, sample=1000, pool=10_000, keep=0.9)
# Then all vectors take part, and at last the map need not be a rotation any more: a regression on the stand-ins comes
# nearer to the truth (0.60 instead of 0.57 around the mean, bge-small, 20,000 texts). A second one would not.
_TURNS, _PENALTY = 3, 0.3
_ITERATIONS = 2 * (_STARTS * _START.rounds + _CLIMB.rounds + _SETTLE.rounds) + _FINISH.rounds + _TURNS


@dataclass(frozen=True)
class UnpairedAlignment:
    """Linear maps between a space and ours, and how far they can be trusted."""

    there: SpaceMap
    """From the source to the target."""
    back: SpaceMap
    agreement: float
    """Mean cosine, around the mean, between what two independent maps make of vectors that neither has seen."""
    mutual_share: float
    """Share of mapped vectors that are the nearest of their own nearest target."""
    source_rows: int
    target_rows: int
    iterations: int
    seed: int


def align_unpaired(
    source: np.ndarray,
    target: np.ndarray,
    *,
    seed: int = 0,
    minimum_agreement: float = MINIMUM_AGREEMENT,
    progress: OnProgress | None = None,
) -> UnpairedAlignment:
    """Find a linear map from the source's space to the target's, from vectors of different texts.

    Args:
        source: unit vectors (n1, d1) of the encoder that is unknown or cannot be called.
        target: unit vectors (n2, d2) of our encoder, for other texts of the same kind.
        seed: the same seed and vectors give the same map.
        minimum_agreement: refuse a map whose two estimates agree less than this.
        progress: told of each round.

    Raises:
        VectorError: the vectors cannot be used, or too few of them differ.
        AlignmentError: two independent estimates disagree, so neither can be trusted.
    """
    generator = np.random.default_rng(seed)
    ours, theirs = make_space(target, "target", generator), make_space(source, "source", generator)

    def advance() -> None:
        if progress is not None:
            progress("aligning", 1, _ITERATIONS)

    unseen = min(_HELD_OUT, len(theirs) // 10)
    halves = zip(np.array_split(theirs.reduced[unseen:], 2), np.array_split(ours.reduced, 2), strict=True)
    first, second = (_estimate(left, right, generator, advance) for left, right in halves)
    agreement = agree(theirs.reduced[:unseen], first, second)
    if not agreement >= minimum_agreement:
        raise _refusal(agreement, minimum_agreement, theirs, ours)
    start = theirs.basis @ orthogonal(first + second) @ ours.basis.T
    turned = refine(theirs.vectors, ours.vectors, start, _FINISH, generator, advance)
    there, back = _fit(theirs.vectors, ours.vectors, turned, advance)
    return UnpairedAlignment(
        there=_between(theirs, ours, there),
        back=_between(ours, theirs, back),
        agreement=agreement,
        mutual_share=mutual_share(normalise(theirs.vectors[:unseen] @ there), ours.vectors),
        source_rows=len(theirs),
        target_rows=len(ours),
        iterations=_ITERATIONS,
        seed=seed,
    )


def agree(vectors: np.ndarray, first: np.ndarray, second: np.ndarray) -> float:
    """Return the mean cosine between what two maps make of the same vectors."""
    return float((normalise(vectors @ first) * normalise(vectors @ second)).sum(1).mean())


def _estimate(
    source: np.ndarray, target: np.ndarray, generator: np.random.Generator, advance: Callable[[], None]
) -> np.ndarray:
    """Return a map from one half of the vectors."""
    starts = [
        refine(source, target, first_map(source, target, generator), _START, generator, advance) for _ in range(_STARTS)
    ]
    sample, pool = draw(source, _HELD_OUT, generator), draw(target, _START.pool, generator)
    matrix = max(starts, key=lambda start: closeness(normalise(sample @ start), pool))
    for refinement in (_CLIMB, _SETTLE):
        matrix = refine(source, target, matrix, refinement, generator, advance)
    return matrix


def _fit(
    source: np.ndarray, target: np.ndarray, start: np.ndarray, advance: Callable[[], None]
) -> tuple[np.ndarray, np.ndarray]:
    """Turn a rotation to where all vectors meet their stand-ins, and return regressions in both directions."""
    matrix = start
    for _ in range(_TURNS):
        matrix = orthogonal(source.T @ stand_ins(normalise(source @ matrix), target))
        advance()
    partners = normalise(stand_ins(normalise(source @ matrix), target))
    return ridge(source, partners, _PENALTY)[0], ridge(partners, source, _PENALTY)[0]


def _between(source: Space, target: Space, matrix: np.ndarray) -> SpaceMap:
    """Return a map between unit vectors. What it gives spreads as widely around its mean as the target's vectors."""
    reach = source.spread * float(np.linalg.norm(source.vectors @ matrix, axis=1).mean())
    return SpaceMap.linear(source.mean, matrix * (target.spread / reach), target.mean)


def _refusal(agreement: float, minimum: float, source: Space, target: Space) -> AlignmentError:
    return AlignmentError(
        f"No map was found that deserves trust: two independent estimates agree to {agreement:.2f}, and {minimum:.2f} "
        f"is needed ({len(source):,} source and {len(target):,} target vectors).",
        "Use target texts of the same kind as the store's texts, add vectors on both sides, or try another `seed`. "
        "Or align with pairs: a few hundred texts whose vectors are known are enough.",
    )
