"""The forward process of masked diffusion: how much is masked at time t. Knows nothing of models or tokens.

Time runs from 0 (the text) to 1 (most or all of it masked). ``alpha(t)`` is the probability that a token survives.
"""

import math

import torch
from torch import Tensor

from unembed.config import NoiseConfig

# The paper's lambda. alpha(1) = exp(-5): at t = 1 the log-linear schedule still shows 0.7 % of the tokens.
LOGLINEAR_RATE = 5.0


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

    def time_of(self, mask_rate: float) -> float:
        """Return the time at which this share of the tokens is masked, at most 1."""
        if self.config.schedule == "linear":
            return mask_rate
        return min(1.0, -math.log1p(-min(mask_rate, 1.0 - 1e-6)) / LOGLINEAR_RATE)

    def sample_times(self, count: int, generator: torch.Generator) -> Tensor:
        """Draw low-discrepancy times: one per equal slice of (0, 1], so that a batch covers the whole range.

        With ``full_mask_share`` the first rows are put at t = 1; the order of rows in a batch carries no meaning.
        """
        offset = torch.rand((), generator=generator)
        times = (offset + torch.arange(count) / count) % 1.0
        times = self.config.minimum_time + (1.0 - self.config.minimum_time) * times
        if self.config.full_mask_share:
            chosen = torch.rand(count, generator=generator) < self.config.full_mask_share
            times = torch.where(chosen, torch.ones_like(times), times)
        return times

    def sample_masks(self, times: Tensor, length: int, generator: torch.Generator) -> Tensor:
        """Draw which positions are masked: (rows, length), each with its row's mask rate, at least one per row.

        A row without a mask teaches nothing, so one position is masked there all the same. That changes the expected
        loss only for the few rows with a time near zero.
        """
        draws = torch.rand((len(times), length), generator=generator)
        rates = self.mask_rate(times)
        if self.config.full_mask_share:
            rates = torch.where(times == 1.0, torch.ones_like(rates), rates)
        masks = draws < rates[:, None]
        lowest = torch.zeros_like(masks).scatter_(1, draws.argmin(1, keepdim=True), True)
        return torch.where(masks.any(1, keepdim=True), masks, lowest)
