"""Reverse diffusion with uniform time steps: in each, a random share of the masked positions is sampled at once."""

from collections.abc import Iterator

import torch
from torch import Tensor

from unembed.decoding.canvases import Canvases
from unembed.decoding.step import Step


def euler(canvases: Canvases) -> Iterator[Step]:
    """Go from time 1 to time 0 in ``steps`` passes; a row that has no mask left is finished sooner."""
    for time, then in time_steps(1.0, canvases.options.steps):
        if len(canvases):
            changed = euler_step(canvases, time, then)
            yield canvases.emit(changed, final=~canvases.masked.any(1))


def time_steps(start: float, steps: int) -> Iterator[tuple[float, float]]:
    """Divide the time from ``start`` to 0 into equal steps: pairs of from and to."""
    for number in range(steps):
        yield start * (1.0 - number / steps), start * (1.0 - (number + 1) / steps)


def euler_step(canvases: Canvases, time: float, then: float) -> Tensor:
    """Reveal the positions that are due between two times; return what changed.

    Which positions those are does not depend on the logits, so nothing is computed for the others.
    """
    where = due(canvases, time, then)
    return canvases.reveal(where, canvases.guess(where, sample=True))


def due(canvases: Canvases, time: float, then: float) -> Tensor:
    """Draw each masked position with the probability that it is revealed between two times."""
    rate, next_rate = canvases.noise.mask_rate(torch.tensor([time, then])).tolist()
    share = 1.0 - next_rate / rate if then > 0.0 else 1.0  # at time 0 nothing is masked
    return canvases.masked & (canvases.uniform() < share)
