"""Tunes what reads vectors, the readout and the length head, to the errors of a map. Knows nothing of maps."""

from collections.abc import Callable, Sequence
from copy import deepcopy
from dataclasses import dataclass

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from unembed.model import ConditionalMDLM
from unembed.model.precision import quickest
from unembed.model.readout import MlpReadout, bag_f1
from unembed.progress import OnProgress

_BATCH = 64
_EPOCHS, _FEWEST_STEPS, _MOST_STEPS = 6, 60, 600
_LEARNING_RATE, _WARMUP_STEPS = 3e-4, 20
# As in training: a text of n tokens counts sqrt(n).
_LENGTH_POWER = 0.5
# The readout is tuned to the map's errors, the denoiser is not: so the readout gets more say when tokens are chosen.
_PRIOR_STRENGTH = 2.0
_HELD_OUT_SHARE, _MOST_HELD_OUT = 0.2, 500


@dataclass(frozen=True)
class Tuning:
    """What was tuned, and what that brought on texts that it was not tuned on."""

    weights: dict[str, Tensor]
    """By their names in the model; none where tuning did not help."""
    before: float
    """Token F1 of the readout, set size known."""
    after: float


class Texts:
    """Texts as a model learns them: ids in rows, padded, and how many of each a canvas holds."""

    def __init__(self, ids: Sequence[Sequence[int]], model: ConditionalMDLM) -> None:
        self.tokens = torch.full((len(ids), max(map(len, ids), default=0)), model.readout.words)
        for row, text in enumerate(ids):
            self.tokens[row, : len(text)] = torch.tensor(text)
        self.lengths = torch.tensor([len(text) for text in ids]).clamp(max=model.config.canvas_length)


@torch.no_grad()
def readout_f1(model: ConditionalMDLM, vectors: np.ndarray, texts: Texts, rows: np.ndarray) -> np.ndarray:
    """Return the readout's token F1 of some texts, read off vectors (m, d), set size known: one mean."""
    prior = model.readout(torch.from_numpy(vectors.astype(np.float32)))
    return np.array([float(bag_f1(prior, texts.tokens[rows], model.readout.words))])


def tune(
    model: ConditionalMDLM,
    vectors: np.ndarray,
    texts: Texts,
    *,
    real: int | None = None,
    quick: bool = False,
    seed: int = 0,
    on_progress: OnProgress = lambda label, more, total: None,
) -> Tuning:
    """Tune readout and length head on mapped vectors (n, d), if that helps on a part that is held out.

    The vectors must be mapped by maps that did not see them: other errors than in use would be learnt. From row
    ``real`` on they are imitations, which nothing is judged by. ``quick`` does not learn from what was held out.
    """
    real = len(vectors) if real is None else real
    imitations = np.arange(real, len(vectors))
    # Where there are many imitations, they count twice as much as all real ones.
    repeated = max(1, len(imitations) // (2 * real))
    order = np.random.default_rng(seed).permutation(real)
    held_out = order[: min(int(_HELD_OUT_SHARE * len(order)), _MOST_HELD_OUT)]
    before = float(readout_f1(model, vectors[held_out], texts, held_out)[0])
    if not isinstance(model.readout, MlpReadout):
        return Tuning({}, before, before)
    steps = int(np.clip(_EPOCHS * len(vectors) // _BATCH, _FEWEST_STEPS, _MOST_STEPS))
    again = not len(imitations) and not quick

    def train(rows: np.ndarray) -> ConditionalMDLM:
        copy = deepcopy(model)
        seen = np.concatenate([np.repeat(rows, repeated), imitations])
        _train(copy, vectors, texts, seen, steps, seed, lambda: on_progress("Tuning", 1, (1 + again) * steps))
        return copy

    tuned = train(order[len(held_out) :])
    after = float(readout_f1(tuned, vectors[held_out], texts, held_out)[0])
    if after <= before:
        return Tuning({}, before, before)
    if again:  # with the part that was held out; beside imitations it would add little
        tuned = train(order)
    names = {name for name, _ in _tuned_parameters(tuned)}
    weights = {name: part for name, part in tuned.state_dict().items() if name in names}
    return Tuning(weights | {"prior_scale": _PRIOR_STRENGTH * model.prior_scale.detach()}, before, after)


def _train(
    model: ConditionalMDLM,
    vectors: np.ndarray,
    texts: Texts,
    rows: np.ndarray,
    steps: int,
    seed: int,
    step_done: Callable[[], None],
) -> None:
    assert isinstance(model.readout, MlpReadout)
    parameters = [parameter.requires_grad_(True) for _, parameter in _tuned_parameters(model)]
    optimiser = torch.optim.AdamW(parameters, _LEARNING_RATE, weight_decay=0.0, fused=True)
    schedule = torch.optim.lr_scheduler.SequentialLR(
        optimiser,
        [
            torch.optim.lr_scheduler.LinearLR(optimiser, 1.0 / _WARMUP_STEPS, total_iters=_WARMUP_STEPS),
            torch.optim.lr_scheduler.CosineAnnealingLR(optimiser, max(1, steps - _WARMUP_STEPS)),
        ],
        [_WARMUP_STEPS],
    )
    device = parameters[0].device
    given = torch.from_numpy(vectors.astype(np.float32))
    generator = torch.Generator().manual_seed(seed)
    chosen = torch.from_numpy(rows)
    for _ in range(steps):
        batch = chosen[torch.randint(len(chosen), (_BATCH,), generator=generator)]
        with quickest(device):
            loss = model.readout.bag_loss(given[batch], texts.tokens[batch], length_power=_LENGTH_POWER)
        if model.length_head is not None:
            loss = loss + F.cross_entropy(model.length_logits(given[batch]), texts.lengths[batch] - 1)
        loss.backward()  # type: ignore[no-untyped-call]
        optimiser.step()
        optimiser.zero_grad()
        schedule.step()
        step_done()
    model.requires_grad_(False)


def _tuned_parameters(model: ConditionalMDLM) -> list[tuple[str, nn.Parameter]]:
    """Return what is tuned: the readout below its table of words, and the length head."""
    return [
        (name, parameter)
        for name, parameter in model.named_parameters()
        if name.startswith(("readout.hidden.", "readout.blocks.", "length_head."))
    ]
