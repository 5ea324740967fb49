"""Intervals of shares that hold for few texts too. Knows nothing of audits."""

import math

import numpy as np

from unembed.evaluation import Figure

_Z = 1.959964  # of a 95 % interval


def wilson(hits: float, n: int) -> Figure:
    """Return a share with its 95 % interval by Wilson: never a point, not even for none or all of n."""
    share = hits / n
    centre = (share + _Z**2 / (2 * n)) / (1 + _Z**2 / n)
    half = _Z / (1 + _Z**2 / n) * math.sqrt(share * (1 - share) / n + (_Z / (2 * n)) ** 2)
    return Figure(share, max(0.0, min(share, centre - half)), min(1.0, max(share, centre + half)), n)


def widen(figure: Figure, by: float) -> Figure:
    """Widen the interval of a share, by the same angle at every height: shares near 0 and 1 vary less."""
    return Figure(figure.value, _turn(figure.low, -by), _turn(figure.high, by), figure.n)


def angle(share: "float | np.ndarray") -> "float | np.ndarray":
    """Return the arcsine of the root of a share, in which errors are of like size at every height."""
    turned: np.ndarray = np.arcsin(np.sqrt(np.clip(share, 0.0, 1.0)))
    return turned


def _turn(share: float, by: float) -> float:
    turned = min(math.pi / 2, max(0.0, float(angle(share)) + by))
    return math.sin(turned) ** 2
