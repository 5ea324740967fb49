"""The extent: how many tokens the text of a vector has, also where it is longer than a canvas. Knows vectors only."""

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from unembed.config import ExtentConfig
from unembed.model.readout import scale_to_sphere

# Numbers of tokens are told apart up to here; above, they fall into classes that grow with the number.
_TOLD_APART, _CLASSES_ABOVE = 16, 32


class Extent(nn.Module):
    """Maps vectors (B, d) to a distribution over numbers of tokens, from 1 to ``longest`` and more."""

    def __init__(self, config: ExtentConfig, embedding_dim: int) -> None:
        super().__init__()
        self.register_buffer("bounds", class_bounds(config.longest), persistent=False)
        self.bounds: Tensor
        """(C,) the largest number of tokens of each class; the last class has no limit."""
        self.hidden = nn.Linear(embedding_dim, config.width)
        self.inner = nn.Linear(config.width, config.width)
        self.out = nn.Linear(config.width, len(self.bounds))
        self.requires_grad_(False)

    def forward(self, embeddings: Tensor) -> Tensor:
        """Return the scores of the classes (B, C)."""
        features = F.gelu(self.inner(F.gelu(self.hidden(scale_to_sphere(embeddings)))))
        return self.out(features)  # type: ignore[no-any-return]

    def loss(self, embeddings: Tensor, lengths: Tensor) -> Tensor:
        """Cross-entropy of the true numbers of tokens (B,): what training minimises."""
        classes = torch.searchsorted(self.bounds, lengths).clamp(max=len(self.bounds) - 1)
        return F.cross_entropy(self(embeddings), classes)

    @torch.no_grad()
    def quantiles(self, embeddings: Tensor, shares: tuple[float, ...]) -> Tensor:
        """Return the numbers of tokens (B, len(shares)) below which these shares of the probability lie."""
        cumulated = self(embeddings).softmax(-1).cumsum(-1)
        classes = torch.stack([(cumulated < share).sum(-1) for share in shares], dim=1)
        return self.bounds[classes.clamp(max=len(self.bounds) - 1)]


def class_bounds(longest: int) -> Tensor:
    """Return the largest number of tokens of each class."""
    each = torch.arange(1, min(_TOLD_APART, longest) + 1)
    if longest <= _TOLD_APART:
        return each
    above = torch.logspace(0, 1, _CLASSES_ABOVE + 1, base=longest / _TOLD_APART)[1:] * _TOLD_APART
    return torch.cat([each, above.round().long()]).unique()
