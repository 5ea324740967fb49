"""Builds what a run is made of: model, average, optimisers, objective, batches. Knows no steps and no time."""

import logging
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor
from torch.optim import Optimizer
from torch.optim.swa_utils import AveragedModel

from unembed.config import Recipe, load_recipe
from unembed.errors import ConfigError, TrainingError
from unembed.model import ConditionalMDLM, NoiseSchedule, Objective
from unembed.store import Store
from unembed.training.batches import BatchDataset, BatchPlan, load_batch
from unembed.training.compatibility import build_for_store, check_pair, check_store
from unembed.training.length import fit_length_head
from unembed.training.optimiser import make_average, make_optimisers
from unembed.training.pretrained import start_from_encoder, start_from_inverter
from unembed.training.readout import count_tokens, fit_readout, measure_readout
from unembed.training.stage import StageControl
from unembed.training.state import has_state
from unembed.training.surrogate import fit_surrogate
from unembed.training.validation import Validation, validation_rows

logger = logging.getLogger(__name__)

# On so many texts at a time, so many times, the inner units of an encoder are compared.
_COMPARED_TEXTS, _COMPARED_BATCHES = 32, 12


@dataclass
class Parts:
    """The parts of a run, on the device that it runs on."""

    store: Store
    validation_store: Store
    model: ConditionalMDLM
    average: AveragedModel
    optimisers: list[Optimizer]
    objective: Objective
    dataset: BatchDataset
    validation: Validation
    token_counts: Tensor

    @property
    def averaged(self) -> ConditionalMDLM:
        """The averaged weights, ready to be measured or saved."""
        model: ConditionalMDLM = self.average.module  # type: ignore[assignment]
        return model.eval()


def build_parts(recipe: Recipe, device: torch.device, *, verify: bool) -> Parts:
    """Open the stores and make everything new. The initial weights depend on the seed only."""
    store = Store(recipe.data.store / "train", verify=verify)
    validation_store = Store(recipe.data.store / "validation", verify=verify)
    for manifest in (store.manifest, validation_store.manifest):
        check_store(recipe, manifest)
    check_pair(store.manifest, validation_store.manifest)
    if not store.manifest.complete:
        logger.warning("The store %s is not finished: training on its first %s rows.", store.folder, f"{len(store):,}")
    torch.manual_seed(recipe.training.seed)
    model = build_for_store(recipe.model, store.manifest).to(device)
    noise = NoiseSchedule(recipe.noise)
    exact = model.config.canvas == "exact"
    counts = count_tokens(store, model.denoiser.outputs, exact=exact)
    plan = BatchPlan(store.lengths, recipe.training.batch_size, recipe.training.seed, one_length=exact)
    rows = validation_rows(validation_store, recipe.data.validation_rows)
    return Parts(
        store=store,
        validation_store=validation_store,
        model=model,
        average=make_average(model, recipe.training.ema_decay),
        optimisers=make_optimisers(model, recipe.training),
        objective=Objective(noise, recipe.training, counts),
        dataset=BatchDataset(store, plan, exact=exact),
        validation=Validation(validation_store, rows, noise, recipe.training),
        token_counts=counts,
    )


def prepare_model(parts: Parts, recipe: Recipe, control: StageControl) -> dict[str, float] | None:
    """Do what comes before the first step: copy pretrained weights; fit readout, surrogate and length head.

    Returns:
        The measures of what was fitted; None if that was stopped.
    """
    model, training = parts.model, recipe.training
    start, finished = training.start_from, True
    if start.encoder:
        plan = BatchPlan(parts.store.lengths, _COMPARED_TEXTS, training.seed, one_length=True)
        texts = [load_batch(parts.store, plan.rows(number), exact=True)[1] for number in range(_COMPARED_BATCHES)]
        start_from_encoder(model, start.encoder, parts.store.tokenizer(), texts)
    if start.inverter:
        start_from_inverter(model, start.inverter)
        if model.writer is not None and model.writer.is_new and not training.writer.steps:
            raise ConfigError(
                f"{start.inverter} has no trained writer, and this run would not train one.",
                "Set training.writer.steps, or remove model.writer from the recipe.",
            )
        if start.readout:
            finished = fit_readout(model, parts.store, parts.token_counts, training, control)
    else:
        finished = fit_readout(model, parts.store, parts.token_counts, training, control)
        if not model.readout.gives_prior:
            # Without a prior the head starts from the tokens' frequencies instead.
            with torch.no_grad():
                share = (parts.token_counts + 1.0) / (parts.token_counts.sum() + len(parts.token_counts))
                model.denoiser.output_bias.copy_(share.log())
    finished = finished and fit_surrogate(model, parts.store, parts.validation_store, training, control)
    if not finished:
        return None
    fit_length_head(model, parts.store, parts.validation_store, training.seed, control.on_progress)
    parts.average.module.load_state_dict(model.state_dict())
    measures = measure_readout(model, parts.validation_store)
    if model.surrogate is not None:
        measures["surrogate_cosine"] = float(model.surrogate.fidelity)
    return measures


def check_run(recipe: Recipe, *, resume: bool) -> None:
    """Refuse to overwrite a run, to resume nothing, or to resume with a recipe that makes another model."""
    folder: Path = recipe.training.output
    if not has_state(folder):
        if resume:
            raise TrainingError(f"There is nothing to resume in {folder}.", "Run without `resume`.")
        return
    if not resume:
        raise TrainingError(
            f"{folder} already holds a run.", "Continue it with `resume=True`, or give another training.output."
        )
    before, now = map(_what_must_stay, (load_recipe(folder / "recipe.yaml"), recipe))
    differing = [key for key in now if before[key] != now[key]]
    if differing:
        raise TrainingError(
            f"The run in {folder} was started with another {', '.join(differing)}.",
            f"Resume with {folder / 'recipe.yaml'}, or give another training.output.",
        )


def _what_must_stay(recipe: Recipe) -> dict[str, Any]:
    return {
        "encoder": recipe.encoder,
        "model": recipe.model,
        "noise": recipe.noise,
        "training.start_from": recipe.training.start_from,
        "training.readout": recipe.training.readout,
        "training.surrogate": recipe.training.surrogate,
        "training.writer": recipe.training.writer,
        "training.optimiser": recipe.training.optimiser,
        "training.seed": recipe.training.seed,
        "training.batch_size": recipe.training.batch_size,
        "training.accumulation": recipe.training.accumulation,
        "training.condition_dropout": recipe.training.condition_dropout,
        "training.sampled_softmax": recipe.training.sampled_softmax,
        "training.frequent_tokens": recipe.training.frequent_tokens,
    }
