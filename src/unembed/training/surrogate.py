"""The stage that trains the surrogate: from the texts of the store to their vectors."""

import torch
import torch.nn.functional as F
from torch import Tensor

from unembed.config import TrainingConfig
from unembed.model import ConditionalMDLM
from unembed.store import Store
from unembed.training.batches import BatchPlan, load_batch
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

    def loss_of(step: int) -> Tensor:
        return (1.0 - _cosines(model, *load_batch(store, plan.rows(step), exact=True))).mean()

    if not train_stage("surrogate", surrogate, loss_of, config, training, control):
        return False
    surrogate.fidelity.fill_(_measure(model, validation))
    return True


@torch.no_grad()
def _measure(model: ConditionalMDLM, validation: Store) -> float:
    """Return the mean cosine of the surrogate's vectors with the encoder's, on held-out texts."""
    plan = BatchPlan(validation.lengths[:_VALIDATION_ROWS], _VALIDATION_BATCH, seed=0, one_length=True)
    batches = (load_batch(validation, plan.rows(number), exact=True) for number in range(plan.per_epoch))
    return float(torch.cat([_cosines(model, *batch) for batch in batches]).mean())


def _cosines(model: ConditionalMDLM, embeddings: Tensor, tokens: Tensor) -> Tensor:
    assert model.surrogate is not None
    device = next(model.parameters()).device
    vectors = model.surrogate(model.denoiser.token_embedding(tokens.to(device)))
    return F.cosine_similarity(vectors, embeddings.to(device))
