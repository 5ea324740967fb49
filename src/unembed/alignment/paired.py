"""From pairs of vectors to the best map between two encoders, judged on pairs that the map has not seen."""

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass

import numpy as np

from unembed.alignment.fitting import Method, Ridge, methods_for, noise_of, ridge
from unembed.alignment.maps import SpaceMap
from unembed.errors import VectorError
from unembed.measures.vectors import find_faults, normalise
from unembed.progress import OnProgress

LEAST_PAIRS = 50
"""With fewer pairs there is nothing to cross-validate on."""
_FOLDS = 5
_JUDGED = 500
# Mapped vectors that are no nearer to their own partners than to those of other pairs belong to no one.
_LEAST_TOP1, _TIMES_CHANCE = 0.05, 5.0
_BACK_PENALTY = 0.3
_IMITATION_PENALTY = 1.0

Judge = Callable[[np.ndarray, np.ndarray], np.ndarray]
"""Scores mapped vectors (m, k), given the numbers of their pairs (m,): one score each, the higher the better."""


@dataclass(frozen=True)
class PairedFit:
    """The map that did best on held-out pairs, fitted again on all of them."""

    there: SpaceMap
    """From the source's encoder to the target's."""
    back: SpaceMap
    """From the target's encoder to the source's."""
    method: Method
    pairs: int
    cosine: float
    """Mean cosine of mapped held-out vectors with their partners."""
    top1: float
    """Share of mapped held-out vectors whose own partner is the nearest of their fold."""
    score: float
    """Mean score by the judge on held-out pairs; without a judge, the cosine."""
    scores: dict[str, float]
    """The best score of each kind of method that was tried."""
    held_out: np.ndarray
    """(n, k): each vector of the source, mapped by a map that was fitted without it."""


def fit_pairs(
    source: np.ndarray,
    target: np.ndarray,
    *,
    judge: Judge | None = None,
    others: np.ndarray | None = None,
    quick: bool = False,
    seed: int = 0,
    on_progress: OnProgress = lambda label, more, total: None,
) -> PairedFit:
    """Choose the best way to map the vectors of one encoder to those of another, and fit it.

    Args:
        source: (n, d) vectors of texts by the encoder that the map takes.
        target: (n, k) vectors of the same texts by the other encoder, in the same order.
        judge: scores held-out vectors; by default their cosine with the truth does.
        others: (m, k) vectors of other texts by the second encoder. They tell where its vectors lie.
        quick: compare fewer methods.
        seed: of the folds.
        on_progress: called after each method.

    Raises:
        VectorError: with the reason, if the pairs are too few, faulty, or do not belong together.
    """
    source, target = _directions(source, "first"), _directions(target, "second")
    _check_pairs(source, target)
    covariance = None if others is None else np.cov(np.concatenate([target, _directions(others, "other")]).T)
    folds = np.random.default_rng(seed).permutation(len(source)) % _FOLDS
    # Methods are compared on as many folds as give enough texts to judge them by; the best one then maps all folds.
    compared = min(_FOLDS, math.ceil(_FOLDS * _JUDGED / len(source)))
    judged = np.flatnonzero(folds < compared)
    rows = judged[np.random.default_rng(seed).permutation(len(judged))[:_JUDGED]]
    methods = methods_for(len(source) * (_FOLDS - 1) // _FOLDS, quick=quick)
    measured: list[tuple[float, Method]] = []
    best, top1 = -math.inf, 0.0
    for method in methods:
        mapped = _map_held_out(method, source, target, covariance, folds, range(compared))
        score = float((judge(mapped[rows], rows) if judge else _cosines(mapped[rows], target[rows])).mean())
        measured.append((score, method))
        top1 = max(top1, _top1(mapped, target, folds, range(compared)))
        if score >= best:
            best, held_out = score, mapped
        on_progress("Fitting the map", 1, len(methods) + 1)
    if top1 < max(_LEAST_TOP1, _TIMES_CHANCE * _FOLDS / len(source)):
        raise VectorError(
            f"The vectors do not belong together: mapped vectors of {len(source):,} pairs find their own partner in "
            f"{top1:.1%} of the cases, chance {_FOLDS / len(source):.1%}.",
            "Check that row i of both belongs to the same text, and that both are of the encoders that you named.",
        )
    score, method = max(measured, key=lambda each: each[0])
    rest = _map_held_out(method, source, target, covariance, folds, range(compared, _FOLDS))
    held_out = np.where((folds < compared)[:, None], held_out, rest)
    on_progress("Fitting the map", 1, len(methods) + 1)
    return PairedFit(
        there=method.fit(source, target, covariance),
        back=Ridge(_BACK_PENALTY).fit(target, source),
        method=method,
        pairs=len(source),
        cosine=float(_cosines(held_out, target).mean()),
        top1=_top1(held_out, target, folds, range(_FOLDS)),
        score=score,
        scores={name: max(each[0] for each in measured if each[1].name == name) for name in _names(methods)},
        held_out=held_out,
    )


def imitate(source: np.ndarray, target: np.ndarray, others: np.ndarray, *, seed: int = 0) -> np.ndarray:
    """Return vectors (m, d) that the source's encoder might have given texts of which only the target's are known.

    They come from a regression of the source on the target, with random errors like those that it has on the pairs.

    Args:
        source: (n, d) vectors of the pairs by the encoder to imitate.
        target: (n, k) vectors of the pairs by the other encoder.
        others: (m, k) vectors of other texts by the other encoder.
        seed: of the errors.
    """
    source, target, others = normalise(source), normalise(target), normalise(others)
    source_mean, target_mean = source.mean(0), target.mean(0)
    forward, residuals = ridge(target - target_mean, source - source_mean, _IMITATION_PENALTY)
    variances, directions = np.linalg.eigh(noise_of(residuals))
    drawn = np.random.default_rng(seed).standard_normal((len(others), len(variances)))
    errors = drawn * np.sqrt(np.maximum(variances, 0.0)) @ directions.T
    imitated: np.ndarray = source_mean + (others - target_mean) @ forward + errors
    return imitated


def _map_held_out(
    method: Method,
    source: np.ndarray,
    target: np.ndarray,
    covariance: np.ndarray | None,
    folds: np.ndarray,
    wanted: Iterable[int],
) -> np.ndarray:
    """Map the vectors of some folds, each by a map that was fitted without its fold; all others become zero."""
    mapped = np.zeros(target.shape, dtype=np.float32)
    for fold in wanted:
        seen = folds != fold
        space_map = method.fit(source[seen], target[seen], covariance)
        mapped[~seen] = space_map.map_array(source[~seen])
    return mapped


def _cosines(mapped: np.ndarray, target: np.ndarray) -> np.ndarray:
    """Return the cosine of each mapped direction with the true one."""
    return np.asarray((mapped * target).sum(1))


def _top1(mapped: np.ndarray, target: np.ndarray, folds: np.ndarray, wanted: Iterable[int]) -> float:
    """Return how often a mapped vector's own partner is the nearest of its fold, means removed."""
    hits = []
    for fold in wanted:
        rows = folds == fold
        given, partners = mapped[rows] - mapped[rows].mean(0), target[rows] - target[rows].mean(0)
        hits.append((given @ partners.T).argmax(1) == np.arange(len(given)))
    return float(np.concatenate(hits).mean())


def _directions(vectors: np.ndarray, which: str) -> np.ndarray:
    """Return vectors at length one, or say which are none."""
    vectors = np.asarray(vectors)
    if vectors.ndim != 2:
        raise VectorError(f"The {which} vectors have the shape {vectors.shape}, not (n, d).", "Give one row per text.")
    for what, bad in find_faults(vectors.astype(np.float32)).items():
        if bad.any():
            raise VectorError(
                f"{int(bad.sum())} of the {which} {len(vectors):,} vectors are {what}, the first in row "
                f"{int(bad.argmax())}.",
                "Leave out these pairs.",
            )
    return normalise(vectors.astype(np.float64))


def _check_pairs(source: np.ndarray, target: np.ndarray) -> None:
    if len(source) != len(target):
        raise VectorError(
            f"There are {len(source):,} vectors on one side and {len(target):,} on the other.", "Give pairs."
        )
    different = min(len(np.unique(side.astype(np.float32), axis=0)) for side in (source, target))
    if different < LEAST_PAIRS:
        raise VectorError(
            f"There are {different:,} different pairs; at least {LEAST_PAIRS} are needed, and 1,000 are better.",
            "Give more texts, and each of them once.",
        )


def _names(methods: list[Method]) -> list[str]:
    return list(dict.fromkeys(method.name for method in methods))
