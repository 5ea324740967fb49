"""How attention tells places apart, beside the embeddings of positions that each architecture has. Sees no tokens.

BERT's attention does not. MPNet's adds a bias to its scores, by the distance of query and key. ModernBERT's turns
queries and keys by their places, and in most layers looks no further than a window.
"""

import math
from typing import NamedTuple

import torch
from torch import Tensor, nn

from unembed.config import ModelConfig


class Places(NamedTuple):
    """What one layer's attention knows of T places."""

    bias: Tensor | None = None
    """(heads or 1, T, T): added to the score of each query with each key."""
    rotation: Tensor | None = None
    """(2, T, head width): cosine and sine of the angles by which queries and keys are turned."""

    def apply(self, query: Tensor, key: Tensor, asked: Tensor | None) -> tuple[Tensor, Tensor, Tensor | None]:
        """Turn queries and keys (B, heads, T, head width) and return them with the bias of their scores.

        With ``asked`` (B, k) the queries are those of these places only.
        """
        bias, rotation = self
        if rotation is not None:
            asking = rotation if asked is None else rotation[:, asked].unsqueeze(2)  # (2, B, 1, k, head width)
            query, key = turn(query, asking), turn(key, rotation)
        if bias is not None and asked is not None:
            bias = bias[:, asked].transpose(0, 1)  # (B, heads or 1, k, T)
        return query, key, bias


NO_PLACES = Places()


class LearnedPlaces(nn.Module):
    """BERT's: none, for embeddings are all that it has."""

    def __init__(self, config: ModelConfig) -> None:
        super().__init__()
        self.layers = config.layers

    def forward(self, count: int) -> list[Places]:
        """Return what each layer knows of so many places."""
        return [NO_PLACES] * self.layers


class RelativePlaces(nn.Module):
    """MPNet's: one bias per head and distance, the same in all layers. Far distances share one with their like."""

    BUCKETS, FAR = 32, 128

    def __init__(self, config: ModelConfig) -> None:
        super().__init__()
        self.layers = config.layers
        self.bias = nn.Embedding(self.BUCKETS, config.heads)
        self.register_buffer("buckets", self._buckets(_distances(config)), persistent=False)
        self.buckets: Tensor

    def forward(self, count: int) -> list[Places]:
        """Return what each layer knows of so many places."""
        return [Places(bias=self.bias(self.buckets[:count, :count]).permute(2, 0, 1))] * self.layers

    def _buckets(self, distances: Tensor) -> Tensor:
        """Return the bucket of each distance: a half for keys behind the query, of which a half is for single steps."""
        half, near = self.BUCKETS // 2, self.BUCKETS // 4
        steps = distances.abs()
        # Computed as in transformers, to the order of operations: where a bucket ends depends on rounding.
        further = torch.log(steps.clamp(min=near) / near) / math.log(self.FAR / near) * (half - near)
        bucket = torch.where(steps < near, steps, (near + further.long()).clamp(max=half - 1))
        return bucket + half * (distances > 0)


class RotaryPlaces(nn.Module):
    """ModernBERT's: every n-th layer sees all, the others what is near; each kind turns with speeds of its own."""

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

    def forward(self, count: int) -> list[Places]:
        """Return what each layer knows of so many places."""
        window = None if self.window is None else self.window[:, :count, :count]
        near = Places(window, self.local_rotation[:, :count])
        everywhere = Places(None, self.global_rotation[:, :count])
        return [near if local else everywhere for local in self.local]


def make_places(config: ModelConfig) -> nn.Module:
    """Return the places of an architecture: a module that maps their number to :class:`Places` of each layer."""
    kinds = {"bert": LearnedPlaces, "mpnet": RelativePlaces, "modernbert": RotaryPlaces}
    return kinds[config.architecture](config)


def turn(states: Tensor, rotation: Tensor) -> Tensor:
    """Turn each number of the first half of a state together with its like in the second."""
    cosine, sine = rotation.unbind(0)
    first, second = states.chunk(2, dim=-1)
    return states * cosine + torch.cat([-second, first], dim=-1) * sine


def _distances(config: ModelConfig) -> Tensor:
    """Return how far behind each query each key is, for as many places as there can be: (T, T)."""
    assert config.canvas_length is not None
    places = torch.arange(config.prefix_tokens + config.canvas_length)
    return places[None, :] - places[:, None]


def _rotation(count: int, width: int, theta: float) -> Tensor:
    speeds = 1.0 / theta ** (torch.arange(0, width, 2).float() / width)
    angles = torch.outer(torch.arange(count).float(), speeds).repeat(1, 2)
    return torch.stack([angles.cos(), angles.sin()])
