"""The extent: how many tokens the text of a vector has, also where it is longer than a canvas. Knows vectors only.

It reads the vector and what the length head makes of it before its last layer, which was learnt from far more texts.
"""

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from unembed.config import ExtentConfig

# Numbers of tokens are told apart up to here; above, they fall into classes that grow with the number.
_TOLD_APART, _CLASSES_ABOVE = 16, 32
# In training, classes near the true one count too: how near, by the logarithm of the number of tokens.
_TOLERANCE = 0.08
_DROPOUT = 0.1


class Extent(nn.Module):
    """Maps features of vectors (B, F) to a distribution over numbers of tokens, from 1 to ``longest``."""

    def __init__(self, config: ExtentConfig, features: int) -> None:
        super().__init__()
        self.register_buffer("bounds", class_bounds(config.longest), persistent=False)
        self.bounds: Tensor
        """(C,) the largest number of tokens of each class; the last class is open."""
        self.hidden = nn.Linear(features, config.width)
        self.out = nn.Linear(config.width, len(self.bounds))
        self.requires_grad_(False)

    def forward(self, features: Tensor) -> Tensor:
        """Return the scores of the classes (B, C)."""
        features = F.dropout(features, _DROPOUT, self.training)
        return self.out(F.gelu(self.hidden(features)))  # type: ignore[no-any-return]

    def classes(self, lengths: Tensor) -> Tensor:
        """Return the class of each number of tokens."""
        return torch.searchsorted(self.bounds, lengths).clamp(max=len(self.bounds) - 1)

    def loss(self, features: Tensor, lengths: Tensor) -> Tensor:
        """Cross-entropy of the numbers of tokens (B,) and those near them: what training minimises."""
        distances = self.bounds.float().log() - lengths.clamp(max=int(self.bounds[-1])).float().log()[:, None]
        wanted = (-0.5 * (distances / _TOLERANCE) ** 2).softmax(-1)
        return F.cross_entropy(self(features), wanted)

    def quantiles(self, features: Tensor, shares: tuple[float, ...]) -> Tensor:
        """Return the numbers of tokens (B, len(shares)) below which these shares of the probability lie."""
        cumulated = self(features).softmax(-1).cumsum(-1)
        chosen = torch.stack([(cumulated < share).sum(-1) for share in shares], dim=1)
        return self.bounds[chosen.clamp(max=len(self.bounds) - 1)]


def class_bounds(longest: int) -> Tensor:
    """Return the largest number of tokens of each class."""
    each = torch.arange(1, min(_TOLD_APART, longest) + 1)
    if longest <= _TOLD_APART:
        return each
    above = torch.logspace(0, 1, _CLASSES_ABOVE + 1, base=longest / _TOLD_APART)[1:] * _TOLD_APART
    return torch.tensor(sorted({*each.tolist(), *above.round().long().tolist()}))
