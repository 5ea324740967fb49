"""From scores to probabilities: how sure an answer is. Calibrated on slots whose truth is known.

Two steps, both fitted by ``benchmarks/filling_calibration.py`` and stored in ``certainty.json``. The first says how
probable it is that the right answer is among the candidates: it is not if the list lacks it, or if the known text is
too wrong. The second says which of the candidates it is: their probabilities fall with a power of the distance that
each leaves between its vector and the one given, and without the encoder also with the denoiser's likelihood.
"""

import json
import math
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Literal

import numpy as np

Way = Literal["encoder", "surrogate", "likelihood"]
"""By what candidates are scored."""
Verdict = Literal["certain", "likely", "a guess", "not in the list"]

SMALLEST_DISTANCE = 1e-5
"""Added to 1 - cosine: what rounding leaves of a distance of zero."""
_CERTAIN, _LIKELY = 0.95, 0.6
_COMPARED = 10
# A cosine that only the right text reaches, and the largest probability of others in a free slot.
_EXACT, _MOST_IF_FREE = 0.999, 0.5


@dataclass(frozen=True)
class Coefficients:
    """What was fitted for one way of scoring."""

    scores: np.ndarray
    """(F,) weights of a candidate's features."""
    presence: np.ndarray
    """(Z,) weights of what tells whether the right answer is among the candidates."""


def features(cosines: np.ndarray | None, likelihoods: np.ndarray | None) -> np.ndarray:
    """Return the features (n, F) of candidates: the logarithm of the distance left, the log-probability."""
    columns = []
    if cosines is not None:
        columns.append(-np.log(np.maximum(1.0 - np.asarray(cosines, dtype=np.float64), 0.0) + SMALLEST_DISTANCE))
    if likelihoods is not None:
        columns.append(np.asarray(likelihoods, dtype=np.float64))
    return np.stack(columns, axis=1)


def evidence(described: np.ndarray, scores: np.ndarray, count: int) -> np.ndarray:
    """Return what tells whether the best candidate is right: (Z,).

    Args:
        described: (n, F) features of the best candidates, best first.
        scores: (n,) their weighted sums.
        count: of all candidates.
    """
    others = scores[1:_COMPARED]
    gap = scores[0] - others[0] if len(others) else 0.0
    ahead = scores[0] - others.mean() if len(others) else 0.0
    return np.array([1.0, *described[0], gap, ahead, float(len(others) == 0), math.log(count)])


def probabilities(way: Way, described: np.ndarray, count: int) -> tuple[np.ndarray, np.ndarray, float]:
    """Return an order of candidates (best first), their probabilities in that order, and that of none being right."""
    fitted = coefficients(way)
    scores = described @ fitted.scores
    order = np.argsort(-scores, kind="stable")
    described, scores = described[order], scores[order]
    present = 1.0 / (1.0 + np.exp(-np.clip(evidence(described, scores, count) @ fitted.presence, -50, 50)))
    shares = np.exp(scores - scores[0])
    return order, present * shares / shares.sum(), float(1.0 - present)


def limit_free(shares: np.ndarray, absent: float, cosine: float) -> tuple[np.ndarray, float]:
    """Lower probabilities of texts that were written for the vector: these come near it without being right.

    The calibration has no such slots, so that only an exact hit may be more than a guess.
    """
    if cosine >= _EXACT or shares[0] <= _MOST_IF_FREE:
        return shares, absent
    lowered = shares * (_MOST_IF_FREE / shares[0])
    return lowered, float(1.0 - lowered.sum())


def judge(best: float, absent: float) -> Verdict:
    """Say a probability in words, given that of the best answer and that of none being right."""
    if best >= _CERTAIN:
        return "certain"
    if best >= _LIKELY:
        return "likely"
    return "not in the list" if absent > 0.5 else "a guess"


@cache
def coefficients(way: Way) -> Coefficients:
    """Return what was fitted for a way of scoring."""
    stored = json.loads(files(__package__).joinpath("certainty.json").read_text(encoding="utf-8"))[way]
    return Coefficients(np.array(stored["scores"]), np.array(stored["presence"]))
