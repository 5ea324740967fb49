"""Fits the length head before the first step, and the extent: how many tokens the text of a vector has.

The denoiser's batches cannot teach it. Each holds texts of one length, so that one batch says "all are 32 long" and
the next "all are 7 long".
"""

from collections.abc import Callable
from copy import deepcopy

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from unembed.errors import ConfigError
from unembed.model import ConditionalMDLM
from unembed.store import Store

_BATCH = 1024
_VALIDATION_ROWS = 4096
_LEARNING_RATE = 2e-3
_EPOCHS, _EXTENT_EPOCHS = 10, 3
_FEWEST_STEPS, _MOST_STEPS = 200, 3000
# How evenly the extent's classes are drawn: 0 as often as they occur, 1 all alike.
_EVENNESS = 0.5


def fit_length_head(
    model: ConditionalMDLM,
    store: Store,
    validation: Store,
    seed: int,
    on_progress: Callable[[str, int, int], None] | None = None,
) -> None:
    """Train the length head on random rows of a store; nothing where the canvas is fixed.

    A head that came with other weights, and does better on the validation store, stays as it was.
    """
    if model.length_head is None:
        return
    head = model.length_head
    before, start = _loss(model, validation), deepcopy(head.state_dict())

    def loss_of(embeddings: Tensor, lengths: Tensor) -> Tensor:
        return F.cross_entropy(model.length_logits(embeddings), lengths - 1)

    _train(head, loss_of, store, seed, "Fitting the length head", on_progress)
    if _loss(model, validation) > before:
        head.load_state_dict(start)


def fit_extent(
    model: ConditionalMDLM, store: Store, seed: int, on_progress: Callable[[str, int, int], None] | None = None
) -> None:
    """Train the extent on rows of a store whose canvases are longer than the model's; long texts are drawn more often.

    Otherwise the few long texts of a corpus would be taken for the many shorter ones.
    """
    if model.extent is None:
        raise ConfigError("The model has no extent.", "Set model.extent.longest.")
    if store.manifest.canvas_length < model.config.extent.longest:
        raise ConfigError(
            f"The store's texts are cut to {store.manifest.canvas_length} tokens, the extent should know up to "
            f"{model.config.extent.longest}.",
            "Embed the corpus with a larger `canvas_length`.",
        )
    extent = model.extent.train()
    classes = extent.classes(torch.from_numpy(store.lengths[:].astype(np.int64)).to(extent.bounds.device)).cpu().numpy()
    chances = np.bincount(classes)[classes] ** -_EVENNESS

    def loss_of(embeddings: Tensor, lengths: Tensor) -> Tensor:
        return extent.loss(model.extent_features(embeddings), lengths)

    _train(extent, loss_of, store, seed, "Fitting the extent", on_progress, chances)
    extent.eval()


def _train(
    head: nn.Module,
    loss_of: Callable[[Tensor, Tensor], Tensor],
    store: Store,
    seed: int,
    label: str,
    on_progress: Callable[[str, int, int], None] | None,
    chances: np.ndarray | None = None,
) -> None:
    """Train a head on vectors and the lengths of their texts, whose rows are drawn alike or with given chances."""
    head.requires_grad_(True)
    device = next(head.parameters()).device
    random = np.random.default_rng(seed)
    # Without chances, as always: a head depends on the order in which rows are drawn.
    shares = None if chances is None else chances / chances.sum()
    rows_at_once = min(_BATCH, len(store))
    epochs = _EPOCHS if chances is None else _EXTENT_EPOCHS
    steps = int(np.clip(epochs * len(store) // rows_at_once, _FEWEST_STEPS, _MOST_STEPS))
    optimiser = torch.optim.AdamW(head.parameters(), lr=_LEARNING_RATE)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimiser, _LEARNING_RATE, steps, pct_start=0.05)
    for step in range(steps):
        drawn = (
            random.integers(0, len(store), rows_at_once)
            if shares is None
            else random.choice(len(store), rows_at_once, p=shares)
        )
        rows = np.sort(drawn)
        lengths = torch.from_numpy(store.lengths[rows].astype(np.int64)).to(device)
        loss_of(torch.from_numpy(store.embeddings(rows)).to(device), lengths).backward()  # type: ignore[no-untyped-call]
        optimiser.step()
        optimiser.zero_grad()
        schedule.step()
        if on_progress:
            on_progress(label, step + 1, steps)
    head.requires_grad_(False)


@torch.no_grad()
def _loss(model: ConditionalMDLM, store: Store) -> float:
    rows = np.arange(min(_VALIDATION_ROWS, len(store)))
    given = torch.from_numpy(store.embeddings(rows)).to(next(model.parameters()).device)
    lengths = torch.from_numpy(store.lengths[rows].astype(np.int64)).to(given.device)
    return float(F.cross_entropy(model.length_logits(given), lengths - 1))
