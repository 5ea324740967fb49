"""The training loop. Knows stores, models and optimisers; decoding and checkpoints reach it as hooks.

Every step's batch, masks and dropout are functions of the seed and the step's number, so a run that was stopped and
resumed takes the very steps that an uninterrupted one would have taken.
"""

import logging
import signal
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import torch
from accelerate import Accelerator
from torch import Tensor, nn
from torch.optim.swa_utils import AveragedModel
from torch.utils.data import DataLoader

from unembed.config import Recipe, dump_recipe
from unembed.errors import TrainingError
from unembed.model import ConditionalMDLM, NoiseSchedule, Objective
from unembed.model.loss import Losses, Noised
from unembed.store import Store
from unembed.training.batches import BatchDataset, BatchPlan, step_generator
from unembed.training.compatibility import check_store
from unembed.training.curves import draw_curves
from unembed.training.log import MetricsLog
from unembed.training.optimiser import make_average, make_optimisers, set_learning_rates
from unembed.training.pretrained import initialise_from_encoder
from unembed.training.readout import count_tokens, fit_readout
from unembed.training.state import has_state, load_state, save_state
from unembed.training.validation import Validation, validation_rows

logger = logging.getLogger(__name__)


@dataclass(frozen=True)
class Hooks:
    """What the loop calls but does not know."""

    export: Callable[[Path, ConditionalMDLM, dict[str, Any]], None] | None = None
    """Writes a loadable inverter with its metrics to a folder."""
    free_running: Callable[[ConditionalMDLM, Store, np.ndarray], dict[str, float]] | None = None
    """Inverts rows of a store from the all-masked canvas and measures the result."""
    on_stage: Callable[[str, int, int], None] | None = None
    """Called with a label, how much is done, and how much there is."""
    on_step: Callable[[int, int, dict[str, float]], None] | None = None
    """Called after every step with its number, the number of steps, and the newest figures."""
    on_validation: Callable[[dict[str, float]], None] | None = None
    """Called with the measures of every validation."""


@dataclass
class Outcome:
    """How a run ended."""

    step: int
    reason: str
    """``finished``, ``time`` (max minutes), ``interrupted`` (a signal) or ``patience``."""
    metrics: dict[str, float] = field(default_factory=dict)
    seconds: float = 0.0


class _LossModule(nn.Module):
    """The objective as a module's forward pass, which is what distributed training wraps."""

    def __init__(self, model: ConditionalMDLM, objective: Objective) -> None:
        super().__init__()
        self.model = model
        self.objective = objective

    def forward(self, embeddings: Tensor, tokens: Tensor, noised: Noised) -> Losses:
        return self.objective(self.model, embeddings, tokens, noised)


def train(
    recipe: Recipe,
    *,
    resume: bool = False,
    max_minutes: float | None = None,
    device: str = "auto",
    hooks: Hooks | None = None,
) -> Outcome:
    """Train as the recipe says, from the start or from the state of a stopped run."""
    return _Run(recipe, resume=resume, max_minutes=max_minutes, device=device, hooks=hooks or Hooks()).go()


class _Run:
    def __init__(self, recipe: Recipe, *, resume: bool, max_minutes: float | None, device: str, hooks: Hooks) -> None:
        self.started = time.monotonic()
        self.deadline = self.started + 60.0 * max_minutes if max_minutes is not None else float("inf")
        self.recipe, self.config, self.hooks = recipe, recipe.training, hooks
        self.folder = recipe.training.output
        self.accelerator = Accelerator(mixed_precision=_precision(recipe, device), cpu=device == "cpu")
        self.is_main = self.accelerator.is_main_process
        self.store = Store(recipe.data.store / "train", verify=self.is_main)
        self.validation_store = Store(recipe.data.store / "validation", verify=self.is_main)
        check_store(recipe, self.store.manifest)
        check_store(recipe, self.validation_store.manifest)
        resumable = has_state(self.folder)
        if resume and not resumable:
            raise TrainingError(f"There is nothing to resume in {self.folder}.", "Run without --resume.")
        if resumable and not resume:
            raise TrainingError(
                f"{self.folder} holds a run already.", "Go on with --resume, or give another training.output."
            )
        self._build()
        self.facts: dict[str, Any] = {"step": 0, "samples": 0, "seconds": 0.0, "best_elbo": None, "stale": 0}
        if resume:
            self.facts = load_state(self.folder, self.model, self.average, self.optimisers)
        else:
            self._prepare()
        self.model, self.average = self.model.to(self.accelerator.device), self.average.to(self.accelerator.device)
        self._wrap()

    def _build(self) -> None:
        """Make the parts. The initial weights depend on the seed only."""
        torch.manual_seed(self.config.seed)
        self.model = ConditionalMDLM.for_store(self.recipe.model, self.store.manifest)
        if self.recipe.model.freeze_token_embeddings:
            self.model.denoiser.token_embedding.weight.requires_grad_(False)
        if self.recipe.model.readout.kind == "none":
            self.model.prior_scale.requires_grad_(False)
            self.model.prior_damping.requires_grad_(False)
        self.average = make_average(self.model, self.config.ema_decay)
        self.optimisers = make_optimisers(self.model, self.config)
        noise = NoiseSchedule(self.recipe.noise)
        counts = count_tokens(self.store, self.model.denoiser.outputs)
        self.objective = Objective(noise, self.config, counts)
        self.token_counts = counts
        rows = validation_rows(self.validation_store, self.recipe.data.validation_rows)
        self.validation = Validation(self.validation_store, rows, noise, self.config)
        exact = self.model.config.canvas == "exact"
        self.plan = BatchPlan(self.store.lengths, self.config.batch_size, self.config.seed, one_length=exact)
        self.dataset = BatchDataset(self.store, self.plan, exact=exact)

    def _prepare(self) -> None:
        """Do what comes before the first step: copy a pretrained encoder, fit the readout."""
        if self.recipe.model.initialise_from:
            initialise_from_encoder(self.model, self.recipe.model.initialise_from)
        self.facts["readout"] = fit_readout(
            self.model, self.store, self.validation_store, self.config.seed, self._on_stage
        )
        if self.recipe.model.readout.kind == "none":
            with torch.no_grad():
                share = (self.token_counts + 1.0) / (self.token_counts.sum() + len(self.token_counts))
                self.model.denoiser.output_bias.copy_(share.log())
        self.average.module.load_state_dict(self.model.state_dict())

    def _wrap(self) -> None:
        module: nn.Module = _LossModule(self.model, self.objective)
        if self.config.compile:
            module = torch.compile(module, dynamic=True)  # type: ignore[assignment]
        self.module = self.accelerator.prepare(module)
        self.optimisers = [self.accelerator.prepare(optimiser) for optimiser in self.optimisers]

    def go(self) -> Outcome:
        if self.is_main:
            dump_recipe(self.recipe, self.folder / "recipe.yaml")
            self.log = MetricsLog(self.folder, self.facts["step"])
            if self.facts["step"] == 0 and self.facts["readout"]:
                self.log.write("readout", 0, self.facts["readout"])
        reason = "finished"
        saved_at = time.monotonic()
        self.model.train()
        with _stop_on_signals() as stopped:
            for parts in self._batches():
                self._step(parts)
                if self.facts["step"] % self.config.validate_every == 0 or self.facts["step"] == self.config.steps:
                    self._validate()
                if self.facts["step"] in self.config.milestones:
                    self._export(f"milestone-{self.facts['step']:06d}")
                if self._any(bool(stopped)):
                    reason = "interrupted"
                elif self._any(time.monotonic() >= self.deadline):
                    reason = "time"
                elif self.config.patience and self.facts["stale"] >= self.config.patience:
                    reason = "patience"
                due = self._any(time.monotonic() - saved_at >= 60.0 * self.config.checkpoint_minutes)
                if due or reason != "finished":
                    self._save()
                    saved_at = time.monotonic()
                if reason != "finished":
                    break
        if reason == "finished":
            self._save()
        return self._end(reason)

    def _batches(self) -> Iterator[list[tuple[Tensor, Tensor]]]:
        """Read this process's batches from the current step on; each step takes ``accumulation`` of them."""
        world, rank, per_step = self.accelerator.num_processes, self.accelerator.process_index, self.config.accumulation
        numbers = [
            number * world + rank for number in range(self.facts["step"] * per_step, self.config.steps * per_step)
        ]
        loader = DataLoader(
            self.dataset,
            batch_size=None,
            sampler=numbers,
            num_workers=self.config.data_workers,
            pin_memory=self.accelerator.device.type == "cuda",
        )
        batches = iter(loader)
        for _ in range(self.facts["step"], self.config.steps):
            yield [next(batches) for _ in range(per_step)]

    def _step(self, parts: list[tuple[Tensor, Tensor]]) -> None:
        begun = time.monotonic()
        step, config = self.facts["step"], self.config
        generator = step_generator(config.seed, step, self.accelerator.process_index)
        if self.recipe.model.dropout:
            torch.manual_seed(int(torch.randint(1 << 62, (), generator=generator)))
        set_learning_rates(self.optimisers, step, config)
        sums = torch.zeros(2)
        device = self.accelerator.device
        for place, (embeddings, tokens) in enumerate(parts):
            noised = self.objective.draw(tokens, generator)
            last = place == len(parts) - 1
            with nullcontext() if last else self.accelerator.no_sync(self.module):
                losses = self.module(
                    embeddings.to(device, non_blocking=True), tokens.to(device, non_blocking=True), noised
                )
                self.accelerator.backward(losses.total / len(parts))
            sums += torch.stack([losses.elbo.detach(), losses.length.detach()]).cpu().float() / len(parts)
        norm = self.accelerator.clip_grad_norm_(self.model.parameters(), config.gradient_clip)
        for optimiser in self.optimisers:
            optimiser.step()
            optimiser.zero_grad()
        self.average.update_parameters(self.model)
        self._count(sums, float(norm), sum(len(tokens) for _, tokens in parts), time.monotonic() - begun)

    def _count(self, sums: Tensor, norm: float, rows: int, seconds: float) -> None:
        facts = self.facts
        facts["step"] += 1
        facts["samples"] += rows * self.accelerator.num_processes
        facts["seconds"] += seconds
        elbo, length = (float(value) for value in sums)
        if not np.isfinite(elbo):
            raise TrainingError(
                f"The loss is {elbo} at step {facts['step']}.",
                "Lower training.learning_rate or training.gradient_clip, and go on with --resume.",
            )
        figures = {
            "elbo": elbo,
            "length_loss": length,
            "gradient_norm": norm,
            "learning_rate": self.optimisers[0].param_groups[0]["lr"],
            "samples": facts["samples"],
            "samples_per_second": rows * self.accelerator.num_processes / seconds,
            "seconds": round(facts["seconds"], 1),
        }
        if self.is_main and (facts["step"] % self.config.log_every == 0 or facts["step"] == 1):
            self.log.write("train", facts["step"], figures)
        if self.is_main and self.hooks.on_step:
            self.hooks.on_step(facts["step"], self.config.steps, figures)

    def _validate(self) -> None:
        """Measure the averaged weights, and keep them as ``best`` when their ELBO is the lowest so far."""
        model = self._averaged()
        metrics = self.validation(model)
        if self.hooks.free_running and self.config.free_running_rows:
            rows = self.validation.rows[: self.config.free_running_rows]
            metrics |= self.hooks.free_running(model, self.validation_store, rows)
        metrics |= {"samples": self.facts["samples"], "seconds": round(self.facts["seconds"], 1)}
        self.facts["metrics"] = metrics
        best = self.facts["best_elbo"]
        improved = best is None or metrics["elbo"] < best
        self.facts["best_elbo"] = metrics["elbo"] if improved else best
        self.facts["stale"] = 0 if improved else self.facts["stale"] + 1
        if self.is_main:
            self.log.write("validation", self.facts["step"], metrics)
            if self.hooks.on_validation:
                self.hooks.on_validation(metrics)
        if improved:
            self._export("best")
        self.model.train()

    def _averaged(self) -> ConditionalMDLM:
        average: AveragedModel = self.average
        model: ConditionalMDLM = average.module  # type: ignore[assignment]
        return model.eval()

    def _export(self, name: str) -> None:
        if self.is_main and self.hooks.export:
            facts = {key: self.facts[key] for key in ("step", "samples", "seconds")} | self.facts.get("metrics", {})
            self.hooks.export(self.folder / name, self._averaged(), facts | self.facts["readout"])

    def _save(self) -> None:
        if self.is_main:
            save_state(self.folder, self.model, self.average, [_bare(o) for o in self.optimisers], self.facts)
        self._export("latest")
        self.accelerator.wait_for_everyone()

    def _end(self, reason: str) -> Outcome:
        if self.is_main:
            self.log.close()
            draw_curves(self.folder)
        return Outcome(
            self.facts["step"], reason, self.facts.get("metrics", {}), round(time.monotonic() - self.started, 1)
        )

    def _any(self, flag: bool) -> bool:
        """Whether any process says so: all must stop at the same step."""
        if self.accelerator.num_processes == 1:
            return flag
        flags = self.accelerator.gather(torch.tensor([flag], device=self.accelerator.device))
        return bool(flags.any())

    def _on_stage(self, label: str, done: int, total: int) -> None:
        if self.is_main and self.hooks.on_stage:
            self.hooks.on_stage(label, done, total)


def _precision(recipe: Recipe, device: str) -> str:
    wanted = recipe.training.precision
    if wanted != "auto":
        return "no" if wanted == "fp32" else wanted
    on_gpu = device != "cpu" and torch.cuda.is_available()
    return "bf16" if on_gpu and torch.cuda.is_bf16_supported() else "no"


def _bare(optimiser: Any) -> Any:
    return getattr(optimiser, "optimizer", optimiser)


@contextmanager
def _stop_on_signals() -> Iterator[list[int]]:
    """Collect SIGINT and SIGTERM instead of dying of them; a second one is obeyed at once."""
    received: list[int] = []

    def receive(number: int, _: Any) -> None:
        if received:
            raise KeyboardInterrupt
        received.append(number)
        logger.warning("Stopping after this step; the state will be saved.")

    try:
        previous = {number: signal.signal(number, receive) for number in (signal.SIGINT, signal.SIGTERM)}
    except ValueError:  # not in the main thread: signals are somebody else's
        yield received
        return
    try:
        yield received
    finally:
        for number, handler in previous.items():
            signal.signal(number, handler)
