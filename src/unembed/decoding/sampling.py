"""From logits to one token per position, with its probability. Knows nothing of canvases."""

from typing import NamedTuple, Self

import torch
from torch import Tensor

from unembed.config import DecodingConfig
from unembed.model import Choice, choose_likeliest


class Guess(NamedTuple):
    """What a pass says at some positions."""

    tokens: Tensor
    confidence: Tensor
    """Probability of that token under the model, whatever the temperature."""
    largest: Tensor
    """Largest probability of any token: the confidence, unless the token was drawn."""
    entropy: Tensor
    """Of the model's distribution, in nats; infinite where it was not asked for."""

    @classmethod
    def of_likeliest(cls, choice: Choice) -> Self:
        """Guess the likeliest tokens."""
        return cls(choice.tokens, choice.confidence, choice.confidence, choice.entropy)


def guide(logits: Tensor, unconditional: Tensor, strength: float) -> Tensor:
    """Classifier-free guidance: move the logits away from what the model would say without the vector."""
    difference = (logits - unconditional).nan_to_num_(nan=0.0)  # -inf minus -inf: forbidden either way
    return logits + strength * difference


def choose(logits: Tensor, draws: Tensor | None, options: DecodingConfig, *, with_entropy: bool = False) -> Guess:
    """Take the likeliest token of each row of logits (M, V), or the one that a uniform draw (M,) picks."""
    logits = logits.float()
    likeliest = Guess.of_likeliest(choose_likeliest(logits, with_entropy=with_entropy))
    if draws is None or options.temperature == 0.0:
        return likeliest
    kept = logits.topk(min(options.top_k, logits.shape[1])) if options.top_k else None
    scores = (logits if kept is None else kept.values) / options.temperature
    # One uniform number per position picks its token: the draw does not depend on the other rows of the batch.
    mass = scores.softmax(-1).cumsum(-1)
    column = torch.searchsorted(mass, (draws.to(mass.dtype) * mass[:, -1])[:, None], right=True)
    # Rounding must not reach a forbidden token.
    last = (scores > -torch.inf).long().cumsum(-1).argmax(-1, keepdim=True)
    column = column.minimum(last)
    tokens = (column if kept is None else kept.indices.gather(1, column))[:, 0]
    lower = logits.gather(1, tokens[:, None]) - logits.gather(1, likeliest.tokens[:, None])
    return likeliest._replace(tokens=tokens, confidence=lower[:, 0].exp() * likeliest.largest)


def repeated(guess: Guess) -> Tensor:
    """Mark (B, T) the positions whose token was also chosen, and more surely, at another position of the row.

    Positions that are revealed in one pass do not know of one another, so they say the same word twice.
    """
    same = guess.tokens[:, :, None] == guess.tokens[:, None, :]
    sureness, position = guess.confidence, torch.arange(guess.tokens.shape[1], device=guess.tokens.device)
    surer = sureness[:, None, :] > sureness[:, :, None]
    earlier = (sureness[:, None, :] == sureness[:, :, None]) & (position < position[:, None])
    asked = sureness >= 0.0
    return (same & (surer | earlier) & asked[:, None, :]).any(-1) & asked
