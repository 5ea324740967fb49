"""The stage that trains the writer: from the vectors of the store to their texts, token by token."""

from dataclasses import replace
from pathlib import Path

import torch
from torch import Tensor

from unembed.checkpoint import load_checkpoint, save_checkpoint
from unembed.config import TrainingConfig
from unembed.model import ConditionalMDLM
from unembed.model.candidates import draw_candidates, most_frequent
from unembed.model.loss import next_token_entropies
from unembed.model.writer import Writer
from unembed.store import Store
from unembed.training.batches import BatchPlan, load_batch, step_generator
from unembed.training.stage import StageControl, train_stage

WRITER = "writer"
"""The name of the stage."""
WRITER_NATS = "writer_nats"
"""The name of its measure."""
_VALIDATION_ROWS = 512
# All tokens are scored: 16 texts of 32 tokens take 60 MB.
_VALIDATION_BATCH = 16


def fit_writer(
    model: ConditionalMDLM,
    store: Store,
    validation: Store,
    token_counts: Tensor,
    training: TrainingConfig,
    control: StageControl,
) -> dict[str, float] | None:
    """Train the writer further, or from the denoiser's weights if it is new.

    Args:
        model: whose writer is trained; its denoiser has taken its last step.
        store: the texts and vectors to learn from.
        validation: held-out ones.
        token_counts: how often each id stands in the store.
        training: how.
        control: progress, stopping and saving.

    Returns:
        ``writer_nats``, the mean negative log-likelihood of a held-out token; None if the stage was stopped.
    """
    writer, config = model.writer, training.writer
    assert writer is not None
    device = writer.start.device
    if writer.is_new:
        writer.start_from(model.denoiser, model.prior_scale, model.prior_damping)
    plan = BatchPlan(store.lengths, config.batch_size, training.seed, one_length=True)
    frequent = most_frequent(token_counts, config.frequent_tokens)

    def loss_of(step: int) -> Tensor:
        embeddings, tokens = load_batch(store, plan.rows(step), exact=True)
        candidates = None
        if config.sampled_softmax:
            generator = step_generator(training.seed, step, 0)
            drawn = draw_candidates(tokens, frequent, len(token_counts), config.sampled_softmax, generator)
            candidates = drawn.to(device)
        return next_token_entropies(model, embeddings.to(device), tokens.to(device), candidates).mean()

    if not train_stage(WRITER, writer, loss_of, config, training, control):
        return None
    return {WRITER_NATS: measure_writer(model, validation)}


@torch.no_grad()
def measure_writer(model: ConditionalMDLM, validation: Store) -> float:
    """Return the writer's mean negative log-likelihood of a token of held-out texts, given those before it."""
    device = next(model.parameters()).device
    plan = BatchPlan(validation.lengths[:_VALIDATION_ROWS], _VALIDATION_BATCH, seed=0, one_length=True)
    batches = (load_batch(validation, plan.rows(number), exact=True) for number in range(plan.per_epoch))
    entropies = [
        next_token_entropies(model, embeddings.to(device), tokens.to(device)).flatten()
        for embeddings, tokens in batches
    ]
    return float(torch.cat(entropies).mean())


def give_writer(folder: Path, writer: Writer, measures: dict[str, float]) -> None:
    """Put a trained writer in the place of the one that an inverter has."""
    checkpoint = load_checkpoint(folder)
    assert checkpoint.model.writer is not None
    checkpoint.model.writer.load_state_dict(writer.state_dict())
    info = checkpoint.info.model_copy(update={"metrics": checkpoint.info.metrics | measures})
    save_checkpoint(folder, replace(checkpoint, info=info))
