"""The stage that trains the surrogate: from the texts of the store to their vectors."""

from collections.abc import Callable

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor

from unembed.config import TrainingConfig
from unembed.model import ConditionalMDLM
from unembed.model.surrogate import Surrogate
from unembed.store import Store
from unembed.training.batches import BatchPlan, load_batch
from unembed.training.distillation import Distillation, check_teacher
from unembed.training.pretrained import load_teacher
from unembed.training.stage import StageControl, train_stage

_VALIDATION_ROWS = 1024
_VALIDATION_BATCH = 128


def fit_surrogate(
    model: ConditionalMDLM, store: Store, validation: Store, training: TrainingConfig, control: StageControl
) -> bool:
    """Train the surrogate, if there is one, and note how near it comes to the encoder.

    Returns:
        Whether it was finished.
    """
    surrogate, config = model.surrogate, training.surrogate
    if surrogate is None or not config.steps:
        return True
    plan = BatchPlan(store.lengths, config.batch_size, training.seed, one_length=True)
    loss_of = _distil(model, store, plan, validation, training) if config.distil else _imitate(model, store, plan)
    if not train_stage("surrogate", surrogate, loss_of, config, training, control):
        return False
    surrogate.fidelity.fill_(_measure(model, surrogate, validation))
    return True


def _imitate(model: ConditionalMDLM, store: Store, plan: BatchPlan) -> Callable[[int], Tensor]:
    """Return the loss of each step for a surrogate that learns from the store's vectors."""
    surrogate = model.surrogate
    assert surrogate is not None

    def loss_of(step: int) -> Tensor:
        return (1.0 - _cosines(model, surrogate, *load_batch(store, plan.rows(step), exact=True))).mean()

    return loss_of


def _distil(
    model: ConditionalMDLM, store: Store, plan: BatchPlan, validation: Store, training: TrainingConfig
) -> Callable[[int], Tensor]:
    """Return the loss of each step for a surrogate that learns from the encoder itself."""
    table = model.denoiser.token_embedding.weight.detach()
    name = training.start_from.encoder
    assert model.surrogate is not None
    assert name is not None, "the configuration was checked"
    teacher = load_teacher(model.config, name).to(table.device)
    check_teacher(_measure(model, teacher, validation), name)
    distillation = Distillation(model.surrogate, teacher, model.config.canvas_length)

    def loss_of(step: int) -> Tensor:
        _, tokens = load_batch(store, plan.rows(step), exact=True)
        return distillation.loss(tokens.to(table.device), table, np.random.default_rng((training.seed, step)))

    return loss_of


@torch.no_grad()
def _measure(model: ConditionalMDLM, surrogate: Surrogate, validation: Store) -> float:
    """Return the mean cosine of a surrogate's vectors with the encoder's, on held-out texts."""
    plan = BatchPlan(validation.lengths[:_VALIDATION_ROWS], _VALIDATION_BATCH, seed=0, one_length=True)
    batches = (load_batch(validation, plan.rows(number), exact=True) for number in range(plan.per_epoch))
    return float(torch.cat([_cosines(model, surrogate, *batch) for batch in batches]).mean())


def _cosines(model: ConditionalMDLM, surrogate: Surrogate, embeddings: Tensor, tokens: Tensor) -> Tensor:
    device = next(model.parameters()).device
    vectors = surrogate(model.denoiser.token_embedding(tokens.to(device)))
    return F.cosine_similarity(vectors, embeddings.to(device))
