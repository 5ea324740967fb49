"""Euler sampling that masks again, after each step, the positions of which the model is least sure."""

import math
from collections.abc import Iterator

import torch
from torch import Tensor

from unembed.config import DecodingConfig
from unembed.decoding.canvases import Canvases
from unembed.decoding.euler import due, euler_step, time_steps
from unembed.decoding.step import Step


def euler_remask(canvases: Canvases) -> Iterator[Step]:
    """Take Euler steps; mask the least confident share, or everything below a threshold, again before the next.

    As in the paper, the confidence at a position is the largest probability that the current pass gives to any token
    there, not that of the token when it was revealed. So the pass also asks about the positions revealed before.
    """
    for time, then in time_steps(1.0, canvases.options.steps):
        if not len(canvases):
            return
        before = canvases.canvas
        if then > 0.0:
            where = due(canvases, time, then)
            revealed = where | ~canvases.masked
            guess = canvases.guess(revealed, sample=True)
            canvases.reveal(where, guess)
            canvases.mask(_doubtful(guess.largest, revealed, canvases.options))
        else:
            euler_step(canvases, time, then)
        yield canvases.emit(canvases.canvas != before, final=~canvases.masked.any(1))


def _doubtful(largest: Tensor, revealed: Tensor, options: DecodingConfig) -> Tensor:
    if options.remask_threshold is not None:
        return revealed & (largest < options.remask_threshold)
    return least_confident(largest, revealed, options.remask_share)


def least_confident(confidence: Tensor, among: Tensor, share: float) -> Tensor:
    """Mark, of the positions marked in each row, the given share (rounded up) that is least confident."""
    counts = torch.tensor([math.ceil(share * count) for count in among.sum(1).tolist()], device=among.device)
    ranks = confidence.masked_fill(~among, torch.inf).argsort(dim=1, stable=True).argsort(dim=1)
    return among & (ranks < counts[:, None])
