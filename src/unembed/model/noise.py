"""The forward process of masked diffusion: how much is masked at time t. Knows nothing of models or tokens.

Time runs from 0 (the text) to 1 (most or all of it masked). ``alpha(t)`` is the probability that a token survives.
"""

from typing import NamedTuple

import torch
from torch import Tensor

from unembed.config import NoiseConfig

# The paper's lambda. alpha(1) = exp(-5): at t = 1 the log-linear schedule still shows 0.7 % of the tokens.
LOGLINEAR_RATE = 5.0


class NoiseSample(NamedTuple):
    """A draw of the forward process."""

    times: Tensor
    """(rows,)"""
    weights: Tensor
    """(rows,): by which the cross-entropy of a masked token counts."""
    masks: Tensor
    """(rows, length): which positions are masked."""


class NoiseSchedule:
    """Mask rates and loss weights of a schedule (paper eq. 2 and 4)."""

    def __init__(self, config: NoiseConfig) -> None:
        self.config = config

    def mask_rate(self, time: Tensor) -> Tensor:
        """Return 1 - alpha(t), the share of tokens that is masked."""
        return time if self.config.schedule == "linear" else -torch.expm1(-LOGLINEAR_RATE * time)

    def weight(self, time: Tensor) -> Tensor:
        """Return w(t), by which the cross-entropy of a masked token counts.

        ``exact`` is -alpha'(t) / (1 - alpha(t)), with which the loss bounds the negative log-likelihood. For the linear
        schedule that is 1 / t. The paper writes 1 / t for its log-linear schedule too, where it bounds nothing;
        ``paper`` reproduces that.
        """
        if self.config.weight == "paper" or self.config.schedule == "linear":
            return 1.0 / time
        return LOGLINEAR_RATE / torch.expm1(LOGLINEAR_RATE * time)

    def time_of(self, mask_rate: Tensor) -> Tensor:
        """Return the times at which these shares of the tokens are masked, at most 1."""
        if self.config.schedule == "linear":
            return mask_rate
        return (-torch.log1p(-mask_rate.clamp(max=1.0 - 1e-6)) / LOGLINEAR_RATE).clamp(max=1.0)

    def sample(self, rows: int, length: int, generator: torch.Generator) -> NoiseSample:
        """Draw a time per row, and which of its positions are masked."""
        times = self._sample_times(rows, generator)
        draws = torch.rand((rows, length), generator=generator)
        if self.config.masking == "count":
            # The loss bounds the same quantity, for the mean over reveal orders needs the counts only. But no row is
            # left without a mask, and no weight exceeds the length.
            counts = torch.ceil(times * length).clamp(min=1)
            times = counts / length
            return NoiseSample(times, self.weight(times), draws.argsort(1).argsort(1) < counts[:, None])
        rates, weights = self.mask_rate(times), self.weight(times)
        if self.config.full_mask_share:
            # At t = 1 the log-linear schedule would still show a few tokens, and its exact weight is near zero. The
            # rows that were put there are masked as a whole and count as they do under the linear schedule.
            at_end = times == 1.0
            rates, weights = rates.masked_fill(at_end, 1.0), weights.masked_fill(at_end, 1.0)
        return NoiseSample(times, weights, draws < rates[:, None])

    def _sample_times(self, rows: int, generator: torch.Generator) -> Tensor:
        """Draw low-discrepancy times: one per equal slice of (0, 1], so that a batch covers the whole range."""
        times = (torch.rand((), generator=generator) + torch.arange(rows) / rows) % 1.0
        times = self.config.minimum_time + (1.0 - self.config.minimum_time) * times
        if self.config.full_mask_share:
            chosen = torch.rand(rows, generator=generator) < self.config.full_mask_share
            times = torch.where(chosen, torch.ones_like(times), times)
        return times
