"""A stage of training before the denoiser's steps or after them: one part of the model, by gradient, on its own.

It can take hours. So it is saved on the way, and what a step does depends on the seed and the step's number only: a run
that was stopped and resumed gets the very weights of an uninterrupted one.
"""

import math
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import torch
from torch import Tensor, nn

from unembed.config import ReadoutTrainingConfig, SurrogateTrainingConfig, TrainingConfig, WriterTrainingConfig
from unembed.training.precision import computes_in_bfloat16
from unembed.training.state import load_state, save_state

_WARMUP_SHARE = 0.05


@dataclass(frozen=True)
class StageControl:
    """How a stage is watched and stopped."""

    on_progress: Callable[[str, int, int], None] | None = None
    """Called with a label, how much is done, and how much there is."""
    must_stop: Callable[[], bool] = lambda: False
    """Asked after every step."""
    saves: bool = True
    """Whether this process writes the state that a stopped stage goes on from."""

    def report(self, label: str, done: int, total: int) -> None:
        """Pass progress on to whoever displays it."""
        if self.on_progress:
            self.on_progress(label, done, total)


def train_stage(
    name: str,
    module: nn.Module,
    loss_of: Callable[[int], Tensor],
    config: ReadoutTrainingConfig | SurrogateTrainingConfig | WriterTrainingConfig,
    training: TrainingConfig,
    control: StageControl,
) -> bool:
    """Train a module from what it is, or from the saved state of the stage; then freeze it.

    Args:
        name: of the stage.
        module: what is trained.
        loss_of: the loss of a step, a function of the step's number.
        config: of the stage.
        training: of the run.
        control: progress, stopping and saving.

    Returns:
        Whether it was finished.
    """
    path = stage_file(training.output, name)
    device = next(module.parameters()).device
    module.requires_grad_(True)
    optimiser = torch.optim.AdamW(module.parameters(), lr=config.learning_rate, fused=True)
    step = load_state(path, {name: module}, [optimiser])["step"] if path.is_file() else 0
    autocast = torch.autocast(device.type, torch.bfloat16, enabled=computes_in_bfloat16(training, device))
    stopped, saved_at = False, time.monotonic()
    while step < config.steps and not stopped:
        optimiser.param_groups[0]["lr"] = config.learning_rate * _learning_rate_share(step, config.steps)
        with autocast:
            loss = loss_of(step)
        loss.backward()  # type: ignore[no-untyped-call]
        if config.gradient_clip:
            nn.utils.clip_grad_norm_(module.parameters(), config.gradient_clip)
        optimiser.step()
        optimiser.zero_grad()
        step += 1
        control.report(f"Training the {name}", step, config.steps)
        stopped = control.must_stop()
        due = time.monotonic() - saved_at >= 60.0 * training.checkpoint_minutes
        if control.saves and (stopped or due or step == config.steps):
            save_state(path, {name: module}, [optimiser], {"step": step})
            saved_at = time.monotonic()
    module.requires_grad_(False)
    return not stopped


def stage_file(run: Path, name: str) -> Path:
    """Return where the state of a stage is kept until the run's own state has its result."""
    return run / f"{name}-state.safetensors"


def _learning_rate_share(step: int, steps: int) -> float:
    """Rise over the first twentieth, then fall to zero along a cosine."""
    warmup = max(1.0, _WARMUP_SHARE * steps)
    return min(1.0, (step + 1) / warmup) * 0.5 * (1.0 + math.cos(math.pi * step / steps))
