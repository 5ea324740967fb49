"""Asks the denoiser what could stand at the masks of canvases, for one vector. Knows no template."""

from collections.abc import Sequence

import numpy as np
import torch
from torch import Tensor

from unembed.engine import Engine
from unembed.model import NoiseSchedule
from unembed.model.precision import quickest

IMPOSSIBLE = -1e4
"""The log-probability of what no canvas can hold."""
_CANVASES_AT_ONCE = 64


@torch.no_grad()
def ask_masks(
    engine: Engine,
    noise: NoiseSchedule,
    vector: Tensor,
    canvases: Sequence[Sequence[int]],
    *,
    first_only: bool = False,
) -> list[np.ndarray]:
    """Return the log-probabilities of all tokens at the masks of each canvas: (masks, outputs) each.

    ``first_only``: at the first mask of each canvas.
    """
    answers: dict[int, np.ndarray] = {}
    by_length: dict[int, list[int]] = {}
    for number, given in enumerate(canvases):
        by_length.setdefault(len(given), []).append(number)
    condition = engine.condition(vector[None])
    for numbers in by_length.values():
        for start in range(0, len(numbers), _CANVASES_AT_ONCE):
            part = numbers[start : start + _CANVASES_AT_ONCE]
            canvas = torch.tensor([list(canvases[number]) for number in part], device=vector.device)
            where = canvas == engine.vocabulary.mask
            times = noise.time_of(where.float().mean(1))
            if first_only:
                where &= where.cumsum(1) == 1
            rows = condition.rows(torch.zeros(len(part), dtype=torch.long, device=vector.device))
            # Two digits are enough.
            with quickest(vector.device):
                hidden = engine.hidden(canvas, rows, times, where).float()
            scores = engine.logits(hidden, where, canvas, rows).float().log_softmax(-1)
            split = torch.split(scores.clamp(min=IMPOSSIBLE).cpu(), where.sum(1).tolist())
            answers |= {number: each.numpy() for number, each in zip(part, split, strict=True)}
    return [answers[number] for number in range(len(canvases))]


@torch.no_grad()
def length_scores(engine: Engine, vector: Tensor) -> np.ndarray:
    """Return the log-probability of each text length, from 0 on; zeros where the model does not guess lengths."""
    longest = engine.config.canvas_length
    if engine.config.canvas == "fixed":
        return np.zeros(longest + 1, dtype=np.float32)
    scores = engine.length_logits(vector[None]).float().log_softmax(-1)[0].cpu().numpy()
    padded: np.ndarray = np.concatenate([[IMPOSSIBLE], scores]).astype(np.float32)
    return padded


def close_canvas_for(engine: Engine, canvas: list[int]) -> list[int]:
    """Fill a fixed canvas up behind the end of the text; other canvases stay as they are."""
    if engine.config.canvas != "fixed":
        return canvas
    vocabulary, room = engine.vocabulary, engine.config.canvas_length - len(canvas)
    return canvas + ([vocabulary.eos] + [vocabulary.pad] * (room - 1) if room else [])
