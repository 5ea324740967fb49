"""The first stage of training: fit the readout on the store, before the denoiser sees a single batch.

Training it can take hours. So it is saved on the way, and what a step does depends on the seed and the step's number
only: a run that was stopped and resumed gets the very readout of an uninterrupted one.
"""

import math
import time
from collections.abc import Callable, Iterator
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
from unembed.training.precision import computes_in_bfloat16
from unembed.training.state import READOUT_FILE, load_state, save_state

_CHUNK = 8192
_VALIDATION_ROWS = 512
_WARMUP_SHARE = 0.05


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
    model: ConditionalMDLM,
    store: Store,
    token_counts: Tensor,
    training: TrainingConfig,
    *,
    on_progress: Callable[[str, int, int], None] | None = None,
    must_stop: Callable[[], bool] = lambda: False,
    saves: bool = True,
) -> bool:
    """Fit the readout in closed form, or take one over; train an ``mlp`` further.

    Args:
        model: whose readout is fitted.
        store: the rows to fit it on.
        token_counts: how often each id stands in the store.
        training: how.
        on_progress: called with a label, how much is done, and how much there is.
        must_stop: asked after every step of an ``mlp``.
        saves: whether this process writes the state that a stopped training goes on from.

    Returns:
        Whether it was finished.
    """
    readout = model.readout
    if not readout.gives_prior:
        return True
    if (training.output / READOUT_FILE).is_file():
        assert isinstance(readout, MlpReadout)
        return _train(readout, store, token_counts, training, on_progress, must_stop, saves)
    chosen = np.random.default_rng(training.seed).permutation(len(store))[: training.readout.rows]

    def batches() -> Iterator[tuple[Tensor, Tensor]]:
        for start in range(0, len(chosen), _CHUNK):
            rows = np.sort(chosen[start : start + _CHUNK])
            yield torch.from_numpy(store.embeddings(rows)), torch.from_numpy(store.tokens(rows))
            if on_progress:
                on_progress("Fitting the readout", min(start + _CHUNK, len(chosen)), len(chosen))

    device = next(model.parameters()).device
    if training.start_from.readout:
        _take_over(model, training.start_from.readout)
    else:
        readout.cpu().fit(batches(), training.readout.ridge)
        readout.to(device)
    if isinstance(readout, MlpReadout):
        return _train(readout, store, token_counts, training, on_progress, must_stop, saves)
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
    readout: MlpReadout,
    store: Store,
    token_counts: Tensor,
    training: TrainingConfig,
    on_progress: Callable[[str, int, int], None] | None,
    must_stop: Callable[[], bool],
    saves: bool,
) -> bool:
    """Train an ``mlp`` readout by gradient, from what it is or from a saved state; then freeze it."""
    config, path = training.readout, training.output / READOUT_FILE
    device = next(readout.parameters()).device
    readout.requires_grad_(True)
    optimiser = torch.optim.AdamW(readout.parameters(), lr=config.learning_rate, fused=True)
    first = load_state(path, {"readout": readout}, [optimiser])["step"] if path.is_file() else 0
    plan = BatchPlan(store.lengths, config.batch_size, training.seed, one_length=False)
    frequent = most_frequent(token_counts[: readout.words], config.frequent_tokens)
    autocast = torch.autocast(device.type, torch.bfloat16, enabled=computes_in_bfloat16(training, device))
    step, stopped, saved_at = first, False, time.monotonic()
    while step < config.steps and not stopped:
        optimiser.param_groups[0]["lr"] = config.learning_rate * _learning_rate_share(step, config.steps)
        rows = np.sort(plan.rows(step))
        embeddings, tokens = torch.from_numpy(store.embeddings(rows)), torch.from_numpy(store.tokens(rows))
        candidates = None
        if config.sampled_softmax:
            words = tokens[tokens < readout.words]
            generator = step_generator(training.seed, step, 0)
            candidates = draw_candidates(words, frequent, readout.words, config.sampled_softmax, generator).to(device)
        with autocast:
            loss = readout.bag_loss(embeddings.to(device), tokens.to(device), candidates, config.length_power)
        loss.backward()  # type: ignore[no-untyped-call]
        if config.gradient_clip:
            torch.nn.utils.clip_grad_norm_(readout.parameters(), config.gradient_clip)
        optimiser.step()
        optimiser.zero_grad()
        step += 1
        if on_progress:
            on_progress("Training the readout", step, config.steps)
        stopped = must_stop()
        if saves and (stopped or time.monotonic() - saved_at >= 60.0 * training.checkpoint_minutes):
            save_state(path, {"readout": readout}, [optimiser], {"step": step})
            saved_at = time.monotonic()
    readout.requires_grad_(False)
    return not stopped


def _learning_rate_share(step: int, steps: int) -> float:
    """Rise over the first twentieth, then fall to zero along a cosine."""
    warmup = max(1.0, _WARMUP_SHARE * steps)
    return min(1.0, (step + 1) / warmup) * 0.5 * (1.0 + math.cos(math.pi * step / steps))
