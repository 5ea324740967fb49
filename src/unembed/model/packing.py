"""Weights as they are stored: whole, halved, or with the large tables in 8 bits. Knows tensors by name, no models."""

from typing import Literal

import torch
from torch import Tensor

Precision = Literal["float32", "float16", "compact"]
"""``compact`` is float16, and int8 for the tables that have a row per token of the vocabulary."""

# The two largest parts of a small model. Rounded to 8 bits per row, their entries err by 0.4 % of the row's largest.
_TABLES = ("denoiser.token_embedding.weight", "readout.linear.weight", "readout.out.weight")
_SCALE = ".scale"
_STEPS = 127


def pack(weights: dict[str, Tensor], precision: Precision) -> dict[str, Tensor]:
    """Return the tensors to be written."""
    dtype = torch.float32 if precision == "float32" else torch.float16
    packed = {}
    for name, tensor in weights.items():
        if precision == "compact" and name in _TABLES:
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
