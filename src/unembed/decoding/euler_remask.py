"""Euler sampling that takes back, after each step, the tokens it is least sure of."""

import math
from collections.abc import Iterator

import torch
from torch import Tensor

from unembed.decoding.canvases import Canvases
from unembed.decoding.euler import euler_step, time_steps
from unembed.decoding.step import Step


def euler_remask(canvases: Canvases) -> Iterator[Step]:
    """Take Euler steps; mask again the least confident share, or everything below a threshold, before the next."""
    for time, then in time_steps(1.0, canvases.options.steps):
        if not len(canvases):
            return
        before = canvases.canvas
        euler_step(canvases, time, then)
        if then > 0.0:
            canvases.mask(_doubtful(canvases))
        yield canvases.emit(canvases.canvas != before, final=~canvases.masked.any(1))


def _doubtful(canvases: Canvases) -> Tensor:
    options, revealed = canvases.options, ~canvases.masked
    if options.remask_threshold is not None:
        return revealed & (canvases.confidence < options.remask_threshold)
    return least_confident(canvases.confidence, revealed, options.remask_share)


def least_confident(confidence: Tensor, among: Tensor, share: float) -> Tensor:
    """Mark, of the positions marked in each row, the given share (rounded up) that is least confident."""
    counts = torch.tensor([math.ceil(share * count) for count in among.sum(1).tolist()], device=among.device)
    ranks = confidence.masked_fill(~among, torch.inf).argsort(dim=1, stable=True).argsort(dim=1)
    return among & (ranks < counts[:, None])
