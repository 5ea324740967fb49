"""What the model guesses at masked positions while it sees the rest of the true text. No inversion."""

from torch import Tensor

from unembed.model.mdlm import Condition, ConditionalMDLM
from unembed.model.noise import NoiseSchedule

MASK_RATES = (0.1, 0.5, 0.9)
"""The rates at which ``masked_accuracy`` is reported."""


def masked_guesses(
    model: ConditionalMDLM, noise: NoiseSchedule, tokens: Tensor, condition: Condition, draws: Tensor, rate: float
) -> tuple[Tensor, Tensor]:
    """Mask the share ``rate`` of each row of true tokens (B, T), where ``draws`` are smallest; let the model guess.

    Returns:
        Which masked positions were guessed right, and which count ([PAD] does not), both (B, T).
    """
    masks = draws.argsort(1).argsort(1) < max(1, round(rate * tokens.shape[1]))
    canvas = tokens.masked_fill(masks, model.vocabulary.mask)
    times = noise.time_of(masks.float().mean(1))
    logits = model.logits(model.hidden(canvas, condition, times), masks, canvas, condition)
    counted = masks & (tokens != model.vocabulary.pad)
    guessed = tokens.masked_scatter(masks, logits.argmax(1))
    return counted & (guessed == tokens), counted
