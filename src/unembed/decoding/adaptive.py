"""As many positions in each pass as the model is sure of together: easy texts take few passes."""

from collections.abc import Iterator

import torch

from unembed.decoding.canvases import Canvases
from unembed.decoding.sampling import repeated
from unembed.decoding.step import Step

# More than any entropy in nats.
_LAST = 1e4


def adaptive(canvases: Canvases) -> Iterator[Step]:
    """Reveal the positions of least entropy while the sum of their entropies, but for the largest, is within a bound.

    That sum bounds what is lost by revealing positions at once as if they did not depend on one another, so the error
    is spread evenly over the passes. At least one position is revealed in each, and after ``steps`` passes all are.
    """
    steps = canvases.options.steps
    for number in range(steps):
        if not len(canvases):
            return
        guess = canvases.guess(canvases.masked, with_entropy=True)
        # A token that would appear twice waits: the next pass sees the first one.
        entropy = torch.where(repeated(guess), guess.entropy + _LAST, guess.entropy)
        entropy, order = entropy.sort(dim=1, stable=True)
        joint = torch.where(entropy.isfinite(), entropy, 0.0).cumsum(1) - entropy
        remaining = canvases.masked.sum(1)
        due = -(-remaining // (steps - number))  # what must be revealed now for the rest to fit into the passes left
        ranks = torch.arange(canvases.length, device=order.device)
        sure = (joint <= canvases.options.entropy_bound) & (entropy < _LAST)
        chosen = sure | (ranks < due[:, None])
        where = torch.zeros_like(canvases.masked).scatter_(1, order, chosen & entropy.isfinite())
        changed = canvases.reveal(where, guess)
        yield canvases.emit(changed, final=~canvases.masked.any(1))
