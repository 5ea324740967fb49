"""The tokens that a sampled softmax chooses among. Knows nothing of models."""

import math
from typing import NamedTuple

import torch
from torch import Tensor


class Candidates(NamedTuple):
    """The ids that a sampled softmax scores."""

    tokens: Tensor
    """(C,) in ascending order."""
    correction: Tensor
    """(C,) added to the logits: a token that was drawn with probability p stands for 1 / p tokens."""

    def to(self, device: torch.device) -> "Candidates":
        """Move both tensors to a device."""
        return Candidates(self.tokens.to(device), self.correction.to(device))


def most_frequent(token_counts: Tensor, count: int) -> Tensor:
    """Return the ``count`` ids that occur most often."""
    return token_counts.argsort(descending=True, stable=True)[:count]


def draw_candidates(
    targets: Tensor, frequent: Tensor, outputs: int, count: int, generator: torch.Generator
) -> Candidates:
    """Choose the tokens of a sampled softmax: the frequent ones, the batch's targets, and ``count`` random others."""
    certain = torch.zeros(outputs, dtype=torch.bool)
    certain[frequent] = True
    certain[targets.cpu()] = True
    rest = (~certain).nonzero()[:, 0]
    drawn = rest[torch.randperm(len(rest), generator=generator)[:count]]
    tokens = torch.cat([certain.nonzero()[:, 0], drawn])
    correction = torch.zeros(len(tokens))
    if len(drawn):
        correction[-len(drawn) :] = math.log(len(rest) / len(drawn))
    tokens, order = tokens.sort()
    return Candidates(tokens, correction[order])
