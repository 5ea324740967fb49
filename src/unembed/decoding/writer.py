"""Left to right by the writer: many beginnings at once, of which the likeliest go on. The nearest text is kept.

Nearness is the surrogate's opinion; where there is none, the likeliest text is kept.
"""

from collections.abc import Iterator

import torch
from torch import Tensor

from unembed.decoding.canvases import Canvases
from unembed.decoding.step import Step
from unembed.errors import ConfigError

# Which beginnings go on is drawn, with Gumbel noise of this size beside the log-probability: texts that differ more
# are worth more to whoever chooses among them.
_NOISE = 0.5
# Tokens that are looked at after each beginning.
_NEXT = 48
# What a nat of a text's log-probability counts beside the cosine of the surrogate's vector.
_NAT = 0.004
# How far a random number keeps from 0 and 1, so that its logarithm and that of the logarithm are finite.
_LEAST = 1e-6


def writer(canvases: Canvases) -> Iterator[Step]:
    """Write ``beams`` texts for each canvas, token by token, and keep the best."""
    writing = canvases.engine.writing(canvases.embeddings)
    if writing is None:
        raise ConfigError(
            "This inverter has no writer.",
            "Choose another strategy, such as confidence; or train one: model.writer and training.writer.",
        )
    count, length, device = len(canvases), canvases.length, canvases.canvas.device
    beams = canvases.options.beams
    lengths = torch.full((count,), length, device=device)
    texts = torch.zeros(count, 1, 0, dtype=torch.long, device=device)
    chances = torch.zeros(count, 1, 0, device=device)
    totals = torch.zeros(count, 1, device=device)
    memories = writing.begin()
    for position in range(length):
        scores = writing.next_tokens(texts, lengths, memories, position)
        best = scores.topk(min(_NEXT, scores.shape[-1]))
        ahead = totals[..., None] + best.values
        noise = (
            canvases.draw(best.values[0].numel()).clamp(_LEAST, 1 - _LEAST).log().neg_().log_().neg_().view_as(ahead)
        )
        chosen = (ahead + _NOISE * noise).flatten(1).topk(min(beams, ahead[0].numel())).indices
        parents, which = chosen // best.values.shape[-1], chosen % best.values.shape[-1]
        totals = ahead.flatten(1).gather(1, chosen)
        token = _take(best.indices, parents, which)
        token = writing.tokens.gather(1, token.flatten(1)).view_as(token)
        chance = _take(best.values, parents, which)
        texts = torch.cat([_of(texts, parents), token[..., None]], dim=2)
        chances = torch.cat([_of(chances, parents), chance[..., None]], dim=2)
        rows = (parents + torch.arange(count, device=device)[:, None] * ahead.shape[1]).flatten()
        for memory in memories:
            memory.select(rows)
        if position + 1 < length:
            yield _show(canvases, texts, chances, totals.argmax(1), final=False)
    yield _show(canvases, texts, chances, _nearest(canvases, texts, totals), final=True)


def _show(canvases: Canvases, texts: Tensor, chances: Tensor, best: Tensor, *, final: bool) -> Step:
    """Put the best beginning (B,) of each vector on its canvas."""
    canvases.passes += 1
    every = torch.arange(len(best), device=best.device)
    text, chance = texts[every, best], chances[every, best].exp()
    shown = text.shape[1]
    before = canvases.canvas.clone()
    canvases.canvas[:, :shown], canvases.confidence[:, :shown] = text, chance
    changed = canvases.canvas != before
    return canvases.emit(changed, final)


def _nearest(canvases: Canvases, texts: Tensor, totals: Tensor) -> Tensor:
    """Return the number (B,) of the best of the texts (B, G, T), given their log-probabilities (B, G)."""
    beams = texts.shape[1]
    near = canvases.engine.resemblance(texts.flatten(0, 1), canvases.embeddings.repeat_interleave(beams, dim=0))
    return (totals if near is None else near.view_as(totals) + _NAT * totals).argmax(1)


def _of(parts: Tensor, parents: Tensor) -> Tensor:
    """Return the parts (B, G, T) that belong to these parents (B, H): (B, H, T)."""
    return parts.gather(1, parents[..., None].expand(-1, -1, parts.shape[2]))


def _take(values: Tensor, parents: Tensor, which: Tensor) -> Tensor:
    """Return one of the values (B, G, n) of each parent (B, H): (B, H)."""
    return _of(values, parents).gather(2, which[..., None])[..., 0]
