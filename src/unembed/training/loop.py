"""The training loop. Knows stores, models, optimisers and checkpoints; what is displayed, it reports to callbacks.

Every step's batch, masks and dropout are functions of the seed and the step's number. So a run that was stopped and
resumed takes exactly the steps that an uninterrupted one would have taken.
"""

import logging
import math
import signal
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import torch
from torch import Tensor, nn
from torch.utils.data import DataLoader

from unembed.checkpoint import Checkpoint, CheckpointInfo, save_checkpoint
from unembed.config import Recipe, dump_recipe
from unembed.errors import ConfigError, TrainingError
from unembed.files import locked_folder, remove_leftovers
from unembed.model import ConditionalMDLM, Objective
from unembed.model.loss import Noised
from unembed.store import find_words
from unembed.training.batches import step_generator
from unembed.training.curves import draw_curves
from unembed.training.free_running import measure_free_running
from unembed.training.log import MetricsLog
from unembed.training.ngrams import count_ngrams
from unembed.training.optimiser import set_learning_rates
from unembed.training.parts import build_parts, check_run, prepare_model
from unembed.training.precision import computes_in_bfloat16
from unembed.training.stage import StageControl, stage_file
from unembed.training.state import RUN_FILE, STAGE_FILES, load_state, save_state
from unembed.training.writer import WRITER, WRITER_NATS, fit_writer, give_writer

logger = logging.getLogger(__name__)

_SECOND_SIGNAL_AFTER = 2.0  # seconds
# Reasons to end for which resuming would bring the denoiser nothing.
_DENOISER_IS_DONE = ("finished", "patience")


@dataclass(frozen=True)
class Callbacks:
    """Functions that are called during a run."""

    on_stage: Callable[[str, int, int], None] | None = None
    """Called with a label, how much is done, and how much there is."""
    on_step: Callable[[int, int, dict[str, float]], None] | None = None
    """Called after every step with its number, the number of steps, and the newest figures."""
    on_validation: Callable[[dict[str, float]], None] | None = None
    """Called with the measures of every validation."""


@dataclass(frozen=True)
class TrainingResult:
    """How a run ended."""

    step: int
    reason: str
    """``finished``, ``time`` (max minutes), ``interrupted`` (a signal) or ``patience``."""
    metrics: dict[str, float] = field(default_factory=dict)


def train(
    recipe: Recipe,
    *,
    resume: bool = False,
    max_minutes: float | None = None,
    device: str = "auto",
    callbacks: Callbacks | None = None,
) -> TrainingResult:
    """Train as the recipe says, from the start or from the state of a stopped run.

    Leaves in ``training.output``: ``best`` and ``latest`` (loadable inverters), ``milestone-*``,
    ``state.safetensors`` (for resuming), ``recipe.yaml``, ``metrics.jsonl``, ``tensorboard`` and ``curves.png``.
    """
    if device not in ("auto", "cpu"):
        raise ConfigError(f"Unknown device '{device}'.", "Give auto or cpu; CUDA_VISIBLE_DEVICES chooses among GPUs.")
    deadline = time.monotonic() + 60.0 * max_minutes if max_minutes is not None else math.inf
    check_run(recipe, resume=resume)
    return _Loop(recipe, callbacks or Callbacks(), device=device).run(resume=resume, deadline=deadline)


class _LossModule(nn.Module):
    """The objective as a module's forward pass, which is what distributed training wraps."""

    def __init__(self, model: ConditionalMDLM, objective: Objective) -> None:
        super().__init__()
        self.model = model
        self.objective = objective

    def forward(self, embeddings: Tensor, tokens: Tensor, noised: Noised) -> Tensor:
        return self.objective(self.model, embeddings, tokens, noised)


class _Loop:
    """One process's view of a run. ``facts`` is all that changes besides weights and optimisers."""

    def __init__(self, recipe: Recipe, callbacks: Callbacks, *, device: str) -> None:
        from accelerate import Accelerator

        self.recipe, self.config, self.callbacks = recipe, recipe.training, callbacks
        self.folder = recipe.training.output
        on_gpu = device != "cpu" and torch.cuda.is_available()
        self.bfloat16 = computes_in_bfloat16(recipe.training, torch.device("cuda" if on_gpu else "cpu"))
        self.accelerator = Accelerator(mixed_precision="bf16" if self.bfloat16 else "no", cpu=device == "cpu")
        self.is_main = self.accelerator.is_main_process
        self.facts: dict[str, Any] = {"step": 0, "samples": 0, "seconds": 0.0, "best_elbo": None, "stale": 0}

    def run(self, *, resume: bool, deadline: float) -> TrainingResult:
        """Hold the folder, prepare the model, and take steps until one of the reasons to stop."""
        with locked_folder(self.folder) if self.is_main else nullcontext(True) as free:
            if not free:
                raise TrainingError(
                    f"Another process is training in {self.folder}.", "Let it end, or give another training.output."
                )
            check_run(self.recipe, resume=resume)  # again: another process may have been here before the lock
            with _stop_on_signals() as signals:

                def reason_to_stop() -> str | None:
                    return self._reason_to_stop(bool(signals), deadline)

                if not self._prepare(resume, reason_to_stop):
                    return TrainingResult(0, reason_to_stop() or "interrupted")
                return self._run(reason_to_stop)

    def _prepare(self, resume: bool, reason_to_stop: Callable[[], str | None]) -> bool:
        """Build the parts of the run; restore their state, or fit what is fitted before the first step.

        Returns:
            Whether the steps can begin; not so if the run was stopped in a stage before them.
        """
        self.parts = build_parts(self.recipe, self.accelerator.device, verify=self.is_main)
        if self.is_main:
            remove_leftovers(self.folder)
            dump_recipe(self.recipe, self.folder / "recipe.yaml")
        if resume and (self.folder / RUN_FILE).is_file():
            self.facts = load_state(self.folder / RUN_FILE, self._modules(), self.parts.optimisers)
            differing = [key for key, value in self._circumstances().items() if self.facts.get(key, value) != value]
            if differing:
                logger.warning(
                    "%s changed since the run was stopped. It continues, but not with exactly the same steps.",
                    ", ".join(differing),
                )
        else:
            measures = prepare_model(self.parts, self.recipe, self._stage_control(reason_to_stop))
            if measures is None:
                return False
            self.facts["readout"] = measures
        self.facts |= self._circumstances()
        self.module = self.accelerator.prepare(_LossModule(self.parts.model, self.parts.objective))
        self.optimisers = [self.accelerator.prepare(optimiser) for optimiser in self.parts.optimisers]
        return True

    def _stage_control(self, reason_to_stop: Callable[[], str | None]) -> StageControl:
        return StageControl(
            on_progress=self.callbacks.on_stage if self.is_main else None,
            must_stop=lambda: reason_to_stop() is not None,
            saves=self.is_main,
        )

    def _modules(self) -> dict[str, nn.Module]:
        return {"model": self.parts.model, "average": self.parts.average}

    def _circumstances(self) -> dict[str, Any]:
        """Return what besides the recipe decides which steps are taken."""
        manifest = self.parts.store.manifest
        return {
            "rows": manifest.rows,
            "source": manifest.source_hash,
            "processes": self.accelerator.num_processes,
            "precision": "bfloat16" if self.bfloat16 else "float32",
        }

    def _run(self, reason_to_stop: Callable[[], str | None]) -> TrainingResult:
        """Take steps until one of the reasons to stop; then save, train the writer, and draw the curves."""
        if self.is_main:
            self.log = MetricsLog(self.folder, self.facts["step"])
            if not self.facts["step"]:
                if self.facts["readout"]:
                    self.log.write("readout", 0, self.facts["readout"])
                self._save_state()
                for file in self.folder.glob(STAGE_FILES):
                    file.unlink()
        reason = self._take_steps(reason_to_stop)
        self._save()
        if reason in _DENOISER_IS_DONE and not self._train_writer(reason_to_stop):
            reason = reason_to_stop() or "interrupted"
        if self.is_main:
            self.log.close()
            draw_curves(self.folder)
        self.accelerator.end_training()
        return TrainingResult(self.facts["step"], reason, self.facts.get("metrics", {}))

    def _take_steps(self, reason_to_stop: Callable[[], str | None]) -> str:
        """Train the denoiser; return why that ended."""
        if self.config.patience and self.facts["stale"] >= self.config.patience:
            return "patience"  # it ended before, and goes on with its writer
        reason = "finished"
        saved_at = time.monotonic()
        self.parts.model.train()
        for batches in self._batches():
            self._step(batches)
            reason = reason_to_stop() or reason
            step = self.facts["step"]
            milestone = step in self.config.milestones
            if step % self.config.validate_every == 0 or step == self.config.steps or milestone or reason == "time":
                self._validate()
            if self.config.patience and self.facts["stale"] >= self.config.patience:
                reason = "patience"
            if milestone:
                self._export(f"milestone-{step:06d}")
            if reason != "finished":
                break
            if self._any(time.monotonic() - saved_at >= 60.0 * self.config.checkpoint_minutes):
                self._save()
                saved_at = time.monotonic()
        return reason

    def _train_writer(self, reason_to_stop: Callable[[], str | None]) -> bool:
        """Train the writer of the averaged model, unless that was done, and give it to ``latest`` and ``best``.

        Returns:
            Whether that is done; not so if it was stopped.
        """
        parts, model = self.parts, self.parts.averaged
        # A run that is prolonged keeps its writer.
        if model.writer is None or not self.config.writer.steps or WRITER_NATS in self.facts["readout"]:
            return True
        measures = fit_writer(
            model,
            parts.store,
            parts.validation_store,
            parts.token_counts,
            self.config,
            self._stage_control(reason_to_stop),
        )
        if measures is None:
            return False
        assert parts.model.writer is not None
        parts.model.writer.load_state_dict(model.writer.state_dict())
        if self.is_main:
            self.log.write(WRITER, self.facts["step"], measures)
            give_writer(self.folder / "best", model.writer, measures)
        self.facts["readout"] |= measures
        self._save()
        if self.is_main:
            stage_file(self.folder, WRITER).unlink()
        return True

    def _batches(self) -> Iterator[list[tuple[Tensor, Tensor]]]:
        """Read this process's batches from the current step on; each step takes ``accumulation`` of them."""
        world, rank = self.accelerator.num_processes, self.accelerator.process_index
        per_step, steps = self.config.accumulation, range(self.facts["step"], self.config.steps)
        numbers = [(step * per_step + part) * world + rank for step in steps for part in range(per_step)]
        loader = iter(
            DataLoader(
                self.parts.dataset,
                batch_size=None,
                sampler=numbers,
                num_workers=self.config.data_workers,
                pin_memory=self.accelerator.device.type == "cuda",
            )
        )
        for _ in steps:
            yield [next(loader) for _ in range(per_step)]

    def _step(self, batches: list[tuple[Tensor, Tensor]]) -> None:
        begun = time.monotonic()
        step, config, device = self.facts["step"], self.config, self.accelerator.device
        generator = step_generator(config.seed, step, self.accelerator.process_index)
        if self.recipe.model.dropout:
            torch.manual_seed(int(torch.randint(1 << 62, (), generator=generator)))
        set_learning_rates(self.parts.optimisers, step, config)
        elbo = 0.0
        for part, (embeddings, tokens) in enumerate(batches):
            noised = self.parts.objective.draw(tokens, generator)
            last = part == len(batches) - 1
            with nullcontext() if last else self.accelerator.no_sync(self.module):
                loss = self.module(
                    embeddings.to(device, non_blocking=True), tokens.to(device, non_blocking=True), noised
                )
                self.accelerator.backward(loss / len(batches))
            elbo += float(loss.detach()) / len(batches)
        norm = float(self.accelerator.clip_grad_norm_(self.module.parameters(), config.gradient_clip))
        if not math.isfinite(elbo) or not math.isfinite(norm):
            raise TrainingError(
                f"At step {step + 1} the loss is {elbo} and the gradient's norm {norm}.",
                "Lower training.learning_rate or training.gradient_clip, and continue with `resume=True`.",
            )
        for optimiser in self.optimisers:
            optimiser.step()
            optimiser.zero_grad()
        self.parts.average.update_parameters(self.parts.model)
        # The batches of all processes: those of one step are numbered in a row.
        count = len(batches) * self.accelerator.num_processes
        rows = sum(len(self.parts.dataset.plan.rows(number)) for number in range(step * count, (step + 1) * count))
        self._record({"elbo": elbo, "gradient_norm": norm}, rows, time.monotonic() - begun)

    def _record(self, figures: dict[str, float], rows: int, seconds: float) -> None:
        """Count a step, and pass its figures to the log and the display."""
        self.facts["step"] += 1
        self.facts["samples"] += rows
        self.facts["seconds"] += seconds
        if not self.is_main:
            return
        figures |= {
            "learning_rate": self.parts.optimisers[0].param_groups[0]["lr"],
            "samples": self.facts["samples"],
            "samples_per_second": rows / seconds,
            "seconds": round(self.facts["seconds"], 1),
        }
        if self.facts["step"] % self.config.log_every == 0 or self.facts["step"] == 1:
            self.log.write("train", self.facts["step"], figures)
        if self.callbacks.on_step:
            self.callbacks.on_step(self.facts["step"], self.config.steps, figures)

    def _validate(self) -> None:
        """Measure the averaged weights, and keep them as ``best`` when their ELBO is the lowest so far."""
        metrics = self._measure() if self.is_main else {}
        if self.accelerator.num_processes > 1:
            from accelerate.utils import broadcast_object_list

            metrics = broadcast_object_list([metrics])[0]
        best = self.facts["best_elbo"]
        improved = best is None or metrics["elbo"] < best
        self.facts["metrics"] = metrics
        self.facts["best_elbo"] = metrics["elbo"] if improved else best
        self.facts["stale"] = 0 if improved else self.facts["stale"] + 1
        if improved:
            self._export("best")

    def _measure(self) -> dict[str, float]:
        model = self.parts.averaged
        metrics = self.parts.validation(model)
        if self.config.free_running_rows:
            rows = self.parts.validation.rows[: self.config.free_running_rows]
            metrics |= measure_free_running(model, self.parts.validation.noise, self.parts.validation_store, rows)
        metrics |= {key: self.facts[key] for key in ("step", "samples")} | {"seconds": round(self.facts["seconds"], 1)}
        self.log.write("validation", self.facts["step"], metrics)
        if self.callbacks.on_validation:
            self.callbacks.on_validation(metrics)
        return metrics

    def _export(self, name: str) -> None:
        """Write the averaged weights as a loadable inverter."""
        if not self.is_main:
            return
        # "step" is the one that was measured, which may be older than the weights.
        metrics = {"saved_step": self.facts["step"]} | self.facts.get("metrics", {}) | self.facts["readout"]
        model, store = self.parts.averaged, self.parts.store
        info = CheckpointInfo.for_store(
            store.manifest, model.config, self.recipe.noise, metrics, self.recipe.data.languages
        )
        checkpoint = Checkpoint(model, store.tokenizer(), info, known_words=self._known_words, ngrams=self._ngrams)
        save_checkpoint(self.folder / name, checkpoint)

    @cached_property
    def _known_words(self) -> tuple[str, ...]:
        return tuple(find_words(self.parts.store))

    @cached_property
    def _ngrams(self) -> bytes:
        return count_ngrams(self.parts.store).to_bytes()

    def _save_state(self) -> None:
        save_state(self.folder / RUN_FILE, self._modules(), self.parts.optimisers, self.facts)

    def _save(self) -> None:
        if self.is_main:
            self._save_state()
        self._export("latest")
        self.accelerator.wait_for_everyone()

    def _reason_to_stop(self, signalled: bool, deadline: float) -> str | None:
        if self._any(signalled):
            return "interrupted"
        return "time" if self._any(time.monotonic() >= deadline) else None

    def _any(self, flag: bool) -> bool:
        """Return whether the flag is set in any process: all must stop at the same step."""
        if self.accelerator.num_processes == 1:
            return flag
        return bool(self.accelerator.gather(torch.tensor([int(flag)], device=self.accelerator.device)).any())


@contextmanager
def _stop_on_signals() -> Iterator[list[float]]:
    """Collect SIGINT and SIGTERM, so that a run can end cleanly. A second signal ends the process at once.

    It must come two seconds later: a launcher passes on the signal that the terminal has sent to its processes already.
    """
    received: list[float] = []

    def receive(_number: int, _frame: Any) -> None:
        received.append(time.monotonic())
        if len(received) > 1:
            if received[-1] - received[0] > _SECOND_SIGNAL_AFTER:
                raise KeyboardInterrupt
            return
        logger.warning("Stopping after this step; the state will be saved.")

    try:
        previous = {number: signal.signal(number, receive) for number in (signal.SIGINT, signal.SIGTERM)}
    except ValueError:  # signals can be handled in the main thread only
        yield received
        return
    try:
        yield received
    finally:
        for number, handler in previous.items():
            signal.signal(number, handler)
