"""Confidence-ordered decoding: reveal the surest positions first, some in each pass, until none is masked."""

from collections.abc import Iterator

import torch
from torch import Tensor

from unembed.decoding.step import Step
from unembed.model import ConditionalMDLM, NoiseSchedule


@torch.no_grad()
def decode_by_confidence(
    model: ConditionalMDLM,
    noise: NoiseSchedule,
    embeddings: Tensor,
    *,
    steps: int = 8,
    lengths: Tensor | None = None,
) -> Iterator[Step]:
    """Recover canvases from vectors, from all [MASK] to none, in at most ``steps`` passes.

    Args:
        model: in evaluation mode.
        noise: the schedule that the model was trained with; it dates a canvas for models with time conditioning.
        embeddings: (B, d), on the model's device.
        steps: passes at most; a text shorter than that takes one pass per token.
        lengths: (B,) how many tokens each text has; by default the likeliest by the length head.
    """
    for rows, length in _by_length(model, embeddings, lengths):
        condition = model.condition(embeddings[rows])
        canvas = torch.full((len(rows), length), model.vocabulary.mask, device=embeddings.device)
        confidence = torch.zeros(canvas.shape, device=embeddings.device)
        passes = min(steps, length)
        for number in range(passes):
            masked = canvas == model.vocabulary.mask
            rate = (length - length * number // passes) / length
            times = torch.full((len(rows),), noise.time_of(rate), device=embeddings.device)
            logits = model.logits(model.hidden(canvas, condition, times), masked, canvas, condition)
            best = logits.float().softmax(-1).max(-1)
            sureness = torch.full(canvas.shape, -1.0, device=embeddings.device)
            guesses = canvas.clone()
            sureness[masked], guesses[masked] = best.values, best.indices
            # Reveal as many as bring the row to its share: the counts add up to the length whatever ``steps`` is.
            count = length * (number + 1) // passes - length * number // passes
            chosen = torch.zeros_like(masked).scatter_(1, sureness.topk(count).indices, True)
            canvas = torch.where(chosen, guesses, canvas)
            confidence = torch.where(chosen, sureness, confidence)
            yield Step(
                rows=rows.to("cpu", copy=True),
                canvas=canvas.to("cpu", copy=True),
                changed=chosen.to("cpu", copy=True),
                confidence=confidence.to("cpu", copy=True),
                mask_rate=1.0 - (number + 1) / passes,
                passes=number + 1,
                final=number + 1 == passes,
            )


def _by_length(model: ConditionalMDLM, embeddings: Tensor, lengths: Tensor | None) -> Iterator[tuple[Tensor, int]]:
    """Group rows by the length of their canvas; on a fixed canvas all rows share one."""
    if model.length_head is None:
        if len(embeddings):
            yield torch.arange(len(embeddings), device=embeddings.device), int(model.config.canvas_length or 0)
        return
    if lengths is None:
        lengths = model.length_logits(embeddings).argmax(1) + 1
    for length in sorted(set(lengths.tolist())):
        yield (lengths == length).nonzero()[:, 0], int(length)
