"""Weights rounded once to the precision that a device multiplies fastest in."""

import copy
from contextlib import AbstractContextManager
from typing import TypeVar

import torch
from torch import nn

from unembed.encoders.precision import has_native_bfloat16

Part = TypeVar("Part", bound=nn.Module)


def round_products(part: Part) -> Part:
    """Return a part of a model for decoding: a copy with linear layers in bfloat16 where the device is built for it.

    Rounded once, not in every pass: that takes as long as a few texts. Call it under :func:`quickest`.
    """
    if not has_native_bfloat16(next(part.parameters()).device):
        return part
    part = copy.deepcopy(part)
    for layer in part.modules():
        if isinstance(layer, nn.Linear):
            layer.bfloat16()
    return part


def quickest(device: torch.device) -> AbstractContextManager[object]:
    """Return a context in which products are taken in bfloat16 where the device is built for it."""
    return torch.autocast(device.type, torch.bfloat16, enabled=has_native_bfloat16(device))
