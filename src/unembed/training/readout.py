"""The first stage of training: fit the readout on the store, before the denoiser sees a single batch."""

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from unembed.canvas import close_canvas
from unembed.checkpoint import read_weights
from unembed.config import TrainingConfig
from unembed.errors import ConfigError, first_line
from unembed.model import ConditionalMDLM
from unembed.model.candidates import draw_candidates, most_frequent
from unembed.model.readout import MlpReadout, bag_f1
from unembed.store import Store
from unembed.training.batches import BatchPlan, step_generator
from unembed.training.stage import StageControl, stage_file, train_stage

STAGE = "readout"
_CHUNK = 8192
_VALIDATION_ROWS = 512


def count_tokens(store: Store, outputs: int, *, exact: bool) -> Tensor:
    """Count how often each id stands on the canvases of a store."""
    counts = np.zeros(store.manifest.vocabulary.total, dtype=np.int64)
    for start in range(0, len(store), _CHUNK):
        rows = np.arange(start, min(start + _CHUNK, len(store)))
        tokens = store.tokens(rows)
        if not exact:
            tokens = close_canvas(tokens, store.lengths[rows], store.manifest.vocabulary)
        counts += np.bincount(tokens.ravel(), minlength=len(counts))
    return torch.from_numpy(counts[:outputs])


def fit_readout(
    model: ConditionalMDLM, store: Store, token_counts: Tensor, training: TrainingConfig, control: StageControl
) -> bool:
    """Fit the readout in closed form, or take one over; train an ``mlp`` further.

    Args:
        model: whose readout is fitted.
        store: the rows to fit it on.
        token_counts: how often each id stands in the store.
        training: how.
        control: progress, stopping and saving.

    Returns:
        Whether it was finished.
    """
    readout = model.readout
    if not readout.gives_prior:
        return True
    if stage_file(training.output, STAGE).is_file():
        assert isinstance(readout, MlpReadout)
        return _train(readout, store, token_counts, training, control)
    chosen = np.random.default_rng(training.seed).permutation(len(store))[: training.readout.rows]

    def batches() -> Iterator[tuple[Tensor, Tensor]]:
        for start in range(0, len(chosen), _CHUNK):
            rows = np.sort(chosen[start : start + _CHUNK])
            yield torch.from_numpy(store.embeddings(rows)), torch.from_numpy(store.tokens(rows))
            control.report("Fitting the readout", min(start + _CHUNK, len(chosen)), len(chosen))

    device = next(model.parameters()).device
    if training.start_from.readout:
        _take_over(model, training.start_from.readout)
    else:
        readout.cpu().fit(batches(), training.readout.ridge)
        readout.to(device)
    if isinstance(readout, MlpReadout):
        return _train(readout, store, token_counts, training, control)
    return True


def measure_readout(model: ConditionalMDLM, validation: Store) -> dict[str, float]:
    """Return ``readout_f1``, the readout's token F1 on held-out rows with the set size known."""
    if not model.readout.gives_prior:
        return {}
    device = next(model.parameters()).device
    rows = np.arange(min(_VALIDATION_ROWS, len(validation)))
    prior = model.readout(torch.from_numpy(validation.embeddings(rows)).to(device)).cpu()
    return {"readout_f1": float(bag_f1(prior, torch.from_numpy(validation.tokens(rows)), model.readout.words))}


def _take_over(model: ConditionalMDLM, folder: Path) -> None:
    """Copy the readout of an inverter; blocks that it lacks stay as they are."""
    blocks = {name: weight for name, weight in model.readout.state_dict().items() if name.startswith("blocks.")}
    weights = read_weights(folder).items()
    theirs = {name.removeprefix("readout."): weight for name, weight in weights if name.startswith("readout.")}
    try:
        model.readout.load_state_dict(blocks | theirs)
    except RuntimeError as error:
        raise ConfigError(
            f"The readout in {folder} has another kind or shape than model.readout: {first_line(error)}",
            "Let training.start_from.readout name an inverter with the same model.readout, or remove the key.",
        ) from error


def _train(
    readout: MlpReadout, store: Store, token_counts: Tensor, training: TrainingConfig, control: StageControl
) -> bool:
    """Train an ``mlp`` readout by gradient."""
    config = training.readout
    device = next(readout.parameters()).device
    plan = BatchPlan(store.lengths, config.batch_size, training.seed, one_length=False)
    frequent = most_frequent(token_counts[: readout.words], config.frequent_tokens)

    def loss_of(step: int) -> Tensor:
        rows = np.sort(plan.rows(step))
        embeddings, tokens = torch.from_numpy(store.embeddings(rows)), torch.from_numpy(store.tokens(rows))
        candidates = None
        if config.sampled_softmax:
            words = tokens[tokens < readout.words]
            generator = step_generator(training.seed, step, 0)
            candidates = draw_candidates(words, frequent, readout.words, config.sampled_softmax, generator).to(device)
        return readout.bag_loss(embeddings.to(device), tokens.to(device), candidates, config.length_power)

    return train_stage(STAGE, readout, loss_of, config, training, control)
