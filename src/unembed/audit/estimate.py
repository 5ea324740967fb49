"""How much was recovered where the texts are not known: estimated from signs that go with recovery on known texts.

The signs of a recovery are its cosine with the vector, the agreement of its hypotheses and its confidence. On texts
that are known, a straight line through these is fitted to each measure; it is then read off for texts that are not.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from unembed.audit.recover import Recovery
from unembed.evaluation.bootstrap import LEVEL, Figure

_FOLDS = 5
# Keeps the line from swinging when signs hardly differ.
_RIDGE = 1e-3


@dataclass(frozen=True)
class Estimate:
    """Measures of texts that are not known."""

    per_text: dict[str, np.ndarray]
    figures: dict[str, Figure]
    errors: dict[str, float]
    """How far off the estimate of one text is on average, on known texts that the line was not fitted to."""


def estimate(
    recoveries: Sequence[Recovery],
    known: Sequence[Recovery],
    truth: dict[str, np.ndarray],
    *,
    resamples: int,
    seed: int = 0,
) -> Estimate:
    """Estimate the measures of recoveries.

    Args:
        recoveries: of texts that are not known.
        known: of texts that are, made in the same way.
        truth: each measure of these, all between 0 and 1.
        resamples: behind the intervals, which count both the sample and the fit as chance.
        seed: of the resamples.
    """
    names = list(truth)
    targets = np.stack([truth[name] for name in names], axis=1)
    signs, ours = _signs(known), _signs(recoveries)
    values = _read(ours, _fit(signs, targets))
    random = np.random.default_rng(seed)
    means = np.empty((resamples, len(names)))
    for round_ in range(resamples):
        drawn = random.integers(len(known), size=len(known))
        again = random.integers(len(recoveries), size=len(recoveries))
        means[round_] = _read(ours[again], _fit(signs[drawn], targets[drawn])).mean(0)
    low, high = np.percentile(means, [50 * (1 - LEVEL), 50 * (1 + LEVEL)], axis=0)
    mean = values.mean(0)
    off = _held_out_errors(signs, targets)
    return Estimate(
        per_text={name: values[:, column] for column, name in enumerate(names)},
        figures={
            name: Figure(float(mean[column]), float(low[column]), float(high[column]), len(recoveries))
            for column, name in enumerate(names)
        },
        errors={name: float(off[column]) for column, name in enumerate(names)},
    )


def _signs(recoveries: Sequence[Recovery]) -> np.ndarray:
    return np.array([[1.0, each.cosine or 0.0, each.agreement, each.confidence] for each in recoveries])


def _fit(signs: np.ndarray, targets: np.ndarray) -> np.ndarray:
    penalty = _RIDGE * len(signs) * np.diag([0.0, *[1.0] * (signs.shape[1] - 1)])
    solution: np.ndarray = np.linalg.lstsq(signs.T @ signs + penalty, signs.T @ targets, rcond=None)[0]
    return solution


def _read(signs: np.ndarray, line: np.ndarray) -> np.ndarray:
    values: np.ndarray = np.clip(signs @ line, 0.0, 1.0)
    return values


def _held_out_errors(signs: np.ndarray, targets: np.ndarray) -> np.ndarray:
    fold = np.arange(len(signs)) % min(_FOLDS, len(signs))
    errors = np.empty_like(targets)
    for number in range(fold.max() + 1):
        inside = fold == number
        outside = ~inside if (~inside).any() else inside
        errors[inside] = np.abs(_read(signs[inside], _fit(signs[outside], targets[outside])) - targets[inside])
    mean: np.ndarray = errors.mean(0)
    return mean
