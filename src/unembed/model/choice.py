"""From logits to the likeliest token of each position, and how sure of it the model is. Knows nothing of canvases."""

from typing import NamedTuple

import torch
from torch import Tensor

# Surprise, in nats, of an impossible token: its probability is 0 in float32, and 0 times this is 0.
IMPOSSIBLE = 1e4


class Choice(NamedTuple):
    """One token for each of M positions."""

    tokens: Tensor
    confidence: Tensor
    """Probability of the token under the model, whatever the temperature."""
    entropy: Tensor
    """Of the model's distribution, in nats; infinite where it was not asked for."""


def choose_likeliest(logits: Tensor, *, with_entropy: bool = False) -> Choice:
    """Take the likeliest token of each row of logits (M, V)."""
    logits = logits.float()
    likeliest = _argmax(logits)
    below = logits - logits.gather(1, likeliest[:, None])
    weights = below.exp() if with_entropy else below.exp_()
    total = weights.sum(-1)
    entropy = torch.full_like(total, torch.inf)
    if with_entropy:
        entropy = total.log() - torch.linalg.vecdot(weights, below.clamp_(min=-IMPOSSIBLE)) / total
    return Choice(likeliest, 1.0 / total, entropy)


def _argmax(logits: Tensor) -> Tensor:
    """Return the index of each row's maximum; on the CPU with numpy, which takes a twentieth of torch's time."""
    return torch.from_numpy(logits.detach().numpy().argmax(-1)) if logits.device.type == "cpu" else logits.argmax(-1)
