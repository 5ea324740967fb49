"""In which precision a run computes. Weights, gradients and losses are float32 in any case."""

import torch

from unembed.config import TrainingConfig
from unembed.encoders.precision import has_native_bfloat16


def computes_in_bfloat16(training: TrainingConfig, device: torch.device) -> bool:
    """Whether products are taken in bfloat16 on a device: where the recipe says so, or where it pays."""
    if training.precision == "auto":
        return has_native_bfloat16(device)
    return training.precision == "bfloat16"
