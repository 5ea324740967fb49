"""How attention distinguishes positions, besides the position embeddings of each architecture. Sees no tokens.

BERT's attention does not. MPNet's adds a bias to its scores, by the distance of query and key. ModernBERT's rotates
queries and keys by their positions, and in most layers looks no further than a window.
"""

import math
from typing import NamedTuple

import torch
from torch import Tensor, nn

from unembed.config import ModelConfig


class AttentionPositions(NamedTuple):
    """What the attention of one layer knows of T positions."""

    bias: Tensor | None = None
    """(heads or 1, T, T): added to the score of each query with each key."""
    rotation: Tensor | None = None
    """(2, T, head width): cosine and sine of the angles by which queries and keys are rotated."""

    def apply(self, q: Tensor, k: Tensor, asked: Tensor | None) -> tuple[Tensor, Tensor, Tensor | None]:
        """Rotate queries and keys (B, heads, T, head width) and return them with the bias of their scores.

        With ``asked`` (B, n) the queries are those of these positions only.
        """
        bias, rotation = self
        if rotation is not None:
            of_queries = rotation if asked is None else rotation[:, asked].unsqueeze(2)  # (2, B, 1, n, head width)
            q, k = rotate(q, of_queries), rotate(k, rotation)
        if bias is not None and asked is not None:
            bias = bias[:, asked].transpose(0, 1)  # (B, heads or 1, n, T)
        return q, k, bias


NO_POSITIONS = AttentionPositions()


class LearnedPositions(nn.Module):
    """BERT: attention itself does not know positions; the position embeddings are enough."""

    def __init__(self, config: ModelConfig) -> None:
        super().__init__()
        self.layers = config.layers

    def forward(self, count: int) -> list[AttentionPositions]:
        """Return what each layer knows about this many positions."""
        return [NO_POSITIONS] * self.layers


class RelativePositions(nn.Module):
    """MPNet's: one bias per head and distance, the same in all layers. Large distances share a bias."""

    BUCKETS, FAR = 32, 128

    def __init__(self, config: ModelConfig) -> None:
        super().__init__()
        self.layers = config.layers
        self.bias = nn.Embedding(self.BUCKETS, config.heads)
        self.register_buffer("buckets", self._buckets(_distances(config)), persistent=False)
        self.buckets: Tensor

    def forward(self, count: int) -> list[AttentionPositions]:
        """Return what each layer knows about this many positions."""
        return [AttentionPositions(bias=self.bias(self.buckets[:count, :count]).permute(2, 0, 1))] * self.layers

    def _buckets(self, distances: Tensor) -> Tensor:
        """Return the bucket of each distance.

        One half of the buckets is for keys behind the query. Half of either half is for single steps.
        """
        half, near = self.BUCKETS // 2, self.BUCKETS // 4
        steps = distances.abs()
        # Computed as in transformers, to the order of operations: where a bucket ends depends on rounding.
        further = torch.log(steps.clamp(min=near) / near) / math.log(self.FAR / near) * (half - near)
        bucket = torch.where(steps < near, steps, (near + further.long()).clamp(max=half - 1))
        return bucket + half * (distances > 0)


class RotaryPositions(nn.Module):
    """ModernBERT's: every n-th layer sees all, the others a window; either kind rotates with its own speeds."""

    def __init__(self, config: ModelConfig) -> None:
        super().__init__()
        rotary = config.rotary
        self.local = [number % rotary.global_every > 0 for number in range(config.layers)]
        distances = _distances(config)
        for name, theta in (("global_rotation", rotary.global_theta), ("local_rotation", rotary.local_theta)):
            self.register_buffer(name, _rotation(len(distances), config.width // config.heads, theta), persistent=False)
        outside = distances.abs() > rotary.window // 2
        # A window over the whole canvas is none, and attention without a bias is faster.
        window = torch.zeros(1, *outside.shape).masked_fill(outside, -math.inf) if outside.any() else None
        self.register_buffer("window", window, persistent=False)
        self.global_rotation: Tensor
        self.local_rotation: Tensor
        self.window: Tensor | None

    def forward(self, count: int) -> list[AttentionPositions]:
        """Return what each layer knows about this many positions."""
        window = None if self.window is None else self.window[:, :count, :count]
        near = AttentionPositions(window, self.local_rotation[:, :count])
        everywhere = AttentionPositions(None, self.global_rotation[:, :count])
        return [near if local else everywhere for local in self.local]


def make_positions(config: ModelConfig) -> nn.Module:
    """Return a module that maps a number of positions to the :class:`AttentionPositions` of each layer."""
    kinds = {"bert": LearnedPositions, "mpnet": RelativePositions, "modernbert": RotaryPositions}
    return kinds[config.architecture](config)


def rotate(states: Tensor, rotation: Tensor) -> Tensor:
    """Rotate each number of the first half of a state together with its counterpart in the second half."""
    cosine, sine = rotation.unbind(0)
    first, second = states.chunk(2, dim=-1)
    return states * cosine + torch.cat([-second, first], dim=-1) * sine


def _distances(config: ModelConfig) -> Tensor:
    """Return how far behind each query each key is, for as many positions as there can be: (T, T)."""
    positions = torch.arange(config.prefix_tokens + config.canvas_length)
    return positions[None, :] - positions[:, None]


def _rotation(count: int, width: int, theta: float) -> Tensor:
    speeds = 1.0 / theta ** (torch.arange(0, width, 2).float() / width)
    angles = torch.outer(torch.arange(count).float(), speeds).repeat(1, 2)
    return torch.stack([angles.cos(), angles.sin()])
