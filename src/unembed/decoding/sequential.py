"""Left to right, the likeliest token each time, one pass per token (the paper's sequential greedy decoding)."""

from collections.abc import Iterator

import torch
from torch import Tensor

from unembed.decoding.canvases import Canvases
from unembed.decoding.step import Step


def sequential(canvases: Canvases) -> Iterator[Step]:
    """Reveal position after position."""
    for changed in left_to_right(canvases):
        yield canvases.emit(changed, final=~canvases.masked.any(1))


def left_to_right(canvases: Canvases) -> Iterator[Tensor]:
    """Reveal position after position, with logits at that one position only; yield what changed."""
    for position in range(canvases.length):
        where = torch.zeros_like(canvases.masked)
        where[:, position] = True
        yield canvases.reveal(where, canvases.guess(where))
