"""The surest positions first, the same number in each pass."""

from collections.abc import Iterator

import torch

from unembed.decoding.canvases import Canvases
from unembed.decoding.sampling import repeated
from unembed.decoding.step import Step


def confidence(canvases: Canvases) -> Iterator[Step]:
    """Reveal in at most ``steps`` passes; a text shorter than that takes one pass per token."""
    length = canvases.length
    passes = min(canvases.options.steps, length)
    for number in range(passes):
        # As many as bring the row to its share: the counts add up to the length whatever ``steps`` is.
        count = length * (number + 1) // passes - length * number // passes
        guess = canvases.guess(canvases.masked)
        # A token that would appear twice comes last: the next pass sees the first one.
        order = torch.where(repeated(guess), guess.confidence - 1.0, guess.confidence)
        where = torch.zeros_like(canvases.masked).scatter_(1, order.topk(count).indices, True)
        yield canvases.emit(canvases.reveal(where, guess), final=number + 1 == passes)
