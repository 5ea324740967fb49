"""The ways to fit a map on pairs: vectors of the same texts by two encoders. Each way is one small class.

All of them see directions: vectors of length one. They know nothing of texts, folds or inverters.
"""

from dataclasses import dataclass
from typing import ClassVar, Protocol

import numpy as np
import torch
import torch.nn.functional as F

from unembed.alignment.maps import SpaceMap

_EPOCHS, _BATCH, _LEARNING_RATE, _WEIGHT_DECAY, _DROPOUT = 20, 256, 1e-3, 0.1, 0.2


class Method(Protocol):
    """A way to fit a map, with its settings."""

    name: ClassVar[str]
    least_pairs: ClassVar[int]
    """With fewer pairs than this it is not tried."""

    def fit(self, source: np.ndarray, target: np.ndarray, covariance: np.ndarray | None = None) -> SpaceMap:
        """Fit a map on pairs of directions: what it takes (n, d), and what it is to give (n, k).

        ``covariance`` (k, k) is that of the target's directions, where more of them are known than the pairs.
        """
        ...


@dataclass(frozen=True)
class Ridge:
    """A linear regression of the target on the source, with a penalty relative to the source's mean variance."""

    penalty: float
    name: ClassVar[str] = "ridge"
    least_pairs: ClassVar[int] = 0

    def fit(self, source: np.ndarray, target: np.ndarray, covariance: np.ndarray | None = None) -> SpaceMap:
        """Solve the regression."""
        means = source.mean(0), target.mean(0)
        matrix, _ = ridge(source - means[0], target - means[1], self.penalty)
        return SpaceMap.linear(means[0], matrix, means[1])


@dataclass(frozen=True)
class Procrustes:
    """The best rotation, scaled: the fewest numbers to learn, so for few pairs and closely related encoders."""

    name: ClassVar[str] = "procrustes"
    least_pairs: ClassVar[int] = 0

    def fit(self, source: np.ndarray, target: np.ndarray, covariance: np.ndarray | None = None) -> SpaceMap:
        """Solve the orthogonal Procrustes problem."""
        means = source.mean(0), target.mean(0)
        left, spectrum, right = np.linalg.svd((source - means[0]).T @ (target - means[1]), full_matrices=False)
        scale = spectrum.sum() / ((source - means[0]) ** 2).sum()
        return SpaceMap.linear(means[0], scale * left @ right, means[1])


@dataclass(frozen=True)
class Posterior:
    """The most probable target given the source, from a regression of the *source on the target*.

    The source is taken for a linear function of the target plus noise. The function has as many inputs as the target
    has dimensions, often fewer than the source has, so that fewer pairs tell it.
    """

    penalty: float
    """Of the regression, relative to the target's mean variance."""
    noise: float
    """How much of the measured noise to believe. Less than 1 shrinks less: the words stay clearer."""
    name: ClassVar[str] = "posterior"
    least_pairs: ClassVar[int] = 0

    def fit(self, source: np.ndarray, target: np.ndarray, covariance: np.ndarray | None = None) -> SpaceMap:
        """Fit function and noise, and invert them."""
        source_mean, target_mean = source.mean(0), target.mean(0)
        forward, residuals = ridge(target - target_mean, source - source_mean, self.penalty)  # (k, d), (n, d)
        noise = noise_of(residuals)
        joint = (np.cov(target.T) if covariance is None else covariance) @ forward  # (k, d)
        smallest = 1e-6 * np.trace(noise) / len(noise)
        matrix = np.linalg.solve(forward.T @ joint + self.noise * noise + smallest * np.eye(len(noise)), joint.T)
        return SpaceMap.linear(source_mean, matrix, target_mean)


@dataclass(frozen=True)
class Network:
    """A ridge regression, corrected by a network with one hidden layer."""

    penalty: float
    width: int = 512
    name: ClassVar[str] = "network"
    least_pairs: ClassVar[int] = 4000

    def fit(self, source: np.ndarray, target: np.ndarray, covariance: np.ndarray | None = None) -> SpaceMap:
        """Train the correction, by the cosine."""
        linear = Ridge(self.penalty).fit(source, target)
        generator = torch.Generator().manual_seed(0)
        space_map = SpaceMap(source.shape[1], target.shape[1], self.width, generator)
        space_map.load_state_dict(linear.state_dict(), strict=False)
        assert space_map.correction is not None
        space_map.correction.requires_grad_(True)
        optimiser = torch.optim.AdamW(
            space_map.correction.parameters(), _LEARNING_RATE, weight_decay=_WEIGHT_DECAY, fused=True
        )
        steps = _EPOCHS * max(1, len(source) // _BATCH)
        schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimiser, steps)
        vectors, wanted = (torch.from_numpy(part.astype(np.float32)) for part in (source, target))
        for _ in range(steps):
            rows = torch.randint(len(vectors), (_BATCH,), generator=generator)
            kept = torch.rand(_BATCH, self.width, generator=generator) >= _DROPOUT
            mapped = space_map(vectors[rows], kept / (1 - _DROPOUT))
            loss = (1 - F.cosine_similarity(mapped, wanted[rows])).mean()
            loss.backward()  # type: ignore[no-untyped-call]
            optimiser.step()
            optimiser.zero_grad()
            schedule.step()
        return space_map.requires_grad_(False)


def methods_for(pairs: int, *, quick: bool = False) -> list[Method]:
    """Return the methods and settings to compare, given so many pairs; if it must be quick, a few of them."""
    if quick:
        return [Procrustes(), Ridge(0.03), Ridge(0.3), *(Posterior(0.1, noise) for noise in (0.25, 0.5, 1.0))]
    candidates: list[Method] = [
        Procrustes(),
        *(Ridge(penalty) for penalty in (0.03, 0.1, 0.3, 1.0)),
        *(Posterior(penalty, noise) for penalty in (0.1, 0.3, 1.0) for noise in (0.12, 0.25, 0.5, 1.0)),
        Network(0.1),
    ]
    return [method for method in candidates if pairs >= method.least_pairs]


def noise_of(residuals: np.ndarray) -> np.ndarray:
    """Return the covariance (d, d) of residuals (n, d), halved off the diagonal: few pairs tell little of it."""
    noise = residuals.T @ residuals / len(residuals)
    halved: np.ndarray = 0.5 * noise + 0.5 * np.diag(np.diag(noise))
    return halved


def ridge(inputs: np.ndarray, outputs: np.ndarray, penalty: float) -> tuple[np.ndarray, np.ndarray]:
    """Regress centred outputs (n, k) on centred inputs (n, d); the penalty is relative to a row's mean square.

    Returns:
        The matrix (d, k), and each row's residual (n, k) when that row itself is left out.
    """
    strength = penalty * float((inputs**2).sum(1).mean())
    rows, columns = inputs.shape
    if columns <= rows:
        inverse = np.linalg.inv(inputs.T @ inputs + strength * np.eye(columns))
        matrix = inverse @ (inputs.T @ outputs)
        leverage = np.einsum("nd,de,ne->n", inputs, inverse, inputs, optimize=True)
    else:
        gram = inputs @ inputs.T
        inverse = np.linalg.inv(gram + strength * np.eye(rows))
        matrix = inputs.T @ (inverse @ outputs)
        leverage = 1.0 - strength * np.diag(inverse)
    residuals = (outputs - inputs @ matrix) / np.maximum(1.0 - leverage, 1e-6)[:, None]
    return matrix, residuals
