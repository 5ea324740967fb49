"""Optimisers, learning rates and the moving average. Knows parameters and step numbers, not data."""

import math
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import torch
from torch import Tensor, nn
from torch.optim import AdamW, Optimizer
from torch.optim.swa_utils import AveragedModel

from unembed.config import TrainingConfig
from unembed.model import ConditionalMDLM

# Coefficients of the quintic Newton-Schulz iteration, from Keller Jordan's description of Muon.
_QUINTIC = (3.4445, -4.7750, 2.0315)


class Muon(Optimizer):
    """Momentum, orthogonalised: each update of a matrix has all its singular values near one.

    ``torch.optim.Muon`` iterates in bfloat16, which CPUs without it emulate some fifty times slower. Here the iteration
    runs in bfloat16 on accelerators and in float32 on a CPU, and matrices of one shape go through it together.
    """

    def __init__(
        self, params: Iterable[Tensor], lr: float, momentum: float = 0.95, weight_decay: float = 0.0, steps: int = 5
    ) -> None:
        super().__init__(params, {"lr": lr, "momentum": momentum, "weight_decay": weight_decay, "steps": steps})

    @torch.no_grad()
    def step(self, closure: Callable[[], float] | None = None) -> None:  # type: ignore[override]
        """Update every matrix that has a gradient."""
        for group in self.param_groups:
            by_shape: dict[torch.Size, list[Tensor]] = {}
            for parameter in group["params"]:
                if parameter.grad is not None:
                    by_shape.setdefault(parameter.shape, []).append(parameter)
            for parameters in by_shape.values():
                updates = orthogonalise(torch.stack([self._momentum(p, group) for p in parameters]), group["steps"])
                rows, columns = parameters[0].shape
                rate = group["lr"] * math.sqrt(max(1.0, rows / columns))
                for parameter, update in zip(parameters, updates, strict=True):
                    parameter.mul_(1.0 - group["lr"] * group["weight_decay"])
                    parameter.add_(update.to(parameter.dtype), alpha=-rate)

    def _momentum(self, parameter: Tensor, group: dict[str, Any]) -> Tensor:
        assert parameter.grad is not None
        buffer: Tensor = self.state[parameter].setdefault("momentum", torch.zeros_like(parameter))
        buffer.lerp_(parameter.grad, 1.0 - group["momentum"])
        return torch.lerp(parameter.grad, buffer, group["momentum"])


def orthogonalise(matrices: Tensor, steps: int) -> Tensor:
    """Bring the singular values of a stack of matrices (n, rows, columns) near one."""
    a, b, c = _QUINTIC
    x: Tensor = matrices.float() if matrices.device.type == "cpu" else matrices.bfloat16()
    wide = x.shape[1] <= x.shape[2]
    x = x if wide else x.mT
    x = x / torch.linalg.matrix_norm(x, keepdim=True).clamp(min=1e-7)
    for _ in range(steps):
        gram = x @ x.mT
        x = a * x + (b * gram + c * gram @ gram) @ x
    return x if wide else x.mT


def make_optimisers(model: ConditionalMDLM, config: TrainingConfig) -> list[Optimizer]:
    """Return AdamW for all parameters, or Muon for the transformer's matrices and AdamW for the rest.

    Norms, biases, embeddings and scalars are not decayed.
    """
    trainable = {name: p for name, p in model.named_parameters() if p.requires_grad}
    hidden = {name for name, p in trainable.items() if ".blocks." in name and p.ndim == 2}
    by_muon = hidden if config.optimiser == "muon" else set()
    decayed = [p for name, p in trainable.items() if name not in by_muon and p.ndim == 2 and "embedding" not in name]
    plain = [p for name, p in trainable.items() if name not in by_muon and (p.ndim != 2 or "embedding" in name)]
    groups = [{"params": decayed, "weight_decay": config.weight_decay}, {"params": plain, "weight_decay": 0.0}]
    optimisers: list[Optimizer] = [AdamW(groups, lr=config.learning_rate, betas=config.betas, fused=True)]
    if by_muon:
        matrices = [trainable[name] for name in sorted(by_muon)]
        optimisers.append(Muon(matrices, lr=config.muon_learning_rate, weight_decay=config.weight_decay))
    return optimisers


def learning_rate_share(step: int, config: TrainingConfig) -> float:
    """Return the share of the full learning rate that step ``step`` (from 0) takes."""
    if step < config.warmup_steps:
        return (step + 1) / config.warmup_steps
    floor = config.final_learning_rate_share
    start = config.warmup_steps if config.schedule == "cosine" else round(config.steps * (1.0 - config.decay_share))
    progress = min(1.0, max(0.0, (step - start) / max(1, config.steps - start)))
    falling = 0.5 * (1.0 + math.cos(math.pi * progress)) if config.schedule == "cosine" else 1.0 - progress
    return floor + (1.0 - floor) * falling


def set_learning_rates(optimisers: Iterable[Optimizer], step: int, config: TrainingConfig) -> float:
    """Set every group to its rate at ``step``; return the share."""
    share = learning_rate_share(step, config)
    for optimiser in optimisers:
        for group in optimiser.param_groups:
            group.setdefault("full_lr", group["lr"])
            group["lr"] = group["full_lr"] * share
    return share


def make_average(model: nn.Module, decay: float) -> AveragedModel:
    """Return the exponential moving average of a model's weights.

    Early on the decay is lower, so that the average does not remember the initial weights for thousands of steps.
    Frozen weights are left out: they are their own average.
    """
    frozen: set[int] = set()

    @torch.no_grad()
    def update(averages: Sequence[Tensor], currents: Sequence[Tensor], averaged: Tensor | int) -> None:
        count = int(averaged)
        share = min(decay, (1.0 + count) / (10.0 + count))
        moving = [pair for pair in zip(averages, currents, strict=True) if pair[0].data_ptr() not in frozen]
        torch._foreach_lerp_([pair[0] for pair in moving], [pair[1] for pair in moving], 1.0 - share)

    average = AveragedModel(model, multi_avg_fn=update, use_buffers=False)
    frozen |= {parameter.data_ptr() for parameter in average.module.parameters() if not parameter.requires_grad}
    return average
