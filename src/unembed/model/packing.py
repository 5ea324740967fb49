"""Weights as they are stored: whole, halved, or with large tables in 8 bits. Knows tensors by name, no models."""

from collections.abc import Collection
from fnmatch import fnmatchcase
from typing import Literal

import torch
from torch import Tensor

WeightPrecision = Literal["float32", "float16", "compact"]
"""``compact`` is float16, and 8 bits per entry for the large matrices that are named."""

TABLES = ("denoiser.token_embedding.weight", "readout.linear.weight", "readout.out.weight")
"""The tables with a row per token: the largest parts of a small model."""
# A matrix with fewer entries is not worth the rounding.
_LARGE = 256
# Rounded to 8 bits per row, entries err by 0.4 % of the row's largest.
_SCALE = ".scale"
_STEPS = 127


def pack(
    weights: dict[str, Tensor], precision: WeightPrecision, in_8_bits: Collection[str] = TABLES
) -> dict[str, Tensor]:
    """Return the tensors to be written.

    Args:
        weights: by name.
        precision: of all weights.
        in_8_bits: which matrices ``compact`` rounds to 8 bits with a scale per row: names, or patterns such as
            ``readout.*``. Vectors and small matrices are never rounded.
    """
    dtype = torch.float32 if precision == "float32" else torch.float16
    packed = {}
    for name, tensor in weights.items():
        named = any(fnmatchcase(name, pattern) for pattern in in_8_bits)
        if precision == "compact" and named and tensor.ndim == 2 and tensor.numel() >= _LARGE:
            scale = (tensor.abs().amax(1, keepdim=True) / _STEPS).clamp(min=torch.finfo(torch.float16).tiny).half()
            packed[name] = (tensor / scale.float()).round().clamp(-_STEPS, _STEPS).to(torch.int8)
            packed[name + _SCALE] = scale
        else:
            packed[name] = tensor.to(dtype)
    return {name: tensor.contiguous() for name, tensor in packed.items()}


def unpack(stored: dict[str, Tensor]) -> dict[str, Tensor]:
    """Return the weights in float32."""
    weights = {name: tensor.float() for name, tensor in stored.items() if not name.endswith(_SCALE)}
    for name in weights:
        if name + _SCALE in stored:
            weights[name] *= stored[name + _SCALE].float()
    return weights
