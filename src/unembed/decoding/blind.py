"""Decoding without the encoder: which hypotheses there are, which are decoded together, and which one is kept."""

from collections.abc import Callable, Iterator
from dataclasses import replace

import torch
from torch import Tensor

from unembed.config import SAMPLING, DecodingConfig
from unembed.decoding.adaptive import adaptive
from unembed.decoding.canvases import Canvases
from unembed.decoding.confidence import confidence
from unembed.decoding.euler import euler
from unembed.decoding.euler_remask import euler_remask
from unembed.decoding.sequential import sequential
from unembed.decoding.step import Step
from unembed.decoding.two_stage import two_stage
from unembed.decoding.writer import writer
from unembed.engine import Engine
from unembed.model import NoiseSchedule

Strategy = Callable[[Canvases], Iterator[Step]]

BLIND: dict[str, Strategy] = {
    "sequential": sequential,
    "euler": euler,
    "euler-remask": euler_remask,
    "two-stage": two_stage,
    "confidence": confidence,
    "adaptive": adaptive,
    "writer": writer,
}
# Texts that the writer goes on with at once, relative to the batch size.
_BEAMS_PER_ROW = 4
# More than any difference between log-probabilities of lengths.
_BEHIND_ALL_OTHERS = 1e4
# For hypotheses that are drawn by a strategy which otherwise takes the likeliest tokens. At 1 they lose their sense.
_DRAW_TEMPERATURE = 0.5


def decode_blind(
    engine: Engine,
    noise: NoiseSchedule,
    embeddings: Tensor,
    options: DecodingConfig,
    *,
    lengths: Tensor | None = None,
    batch_size: int = 64,
) -> Iterator[Step]:
    """Decode every hypothesis of each vector, and keep the best by the model's own score."""
    waiting: dict[int, list[Step]] = {}
    count = _hypotheses_per_vector(engine, options, lengths)
    for step in decode_hypotheses(engine, noise, embeddings, options, lengths=lengths, batch_size=batch_size):
        if count == 1:
            yield step
            continue
        yield replace(step, final=torch.zeros_like(step.final))
        for index in step.final.nonzero()[:, 0].tolist():
            row = int(step.rows[index])
            ended = waiting.setdefault(row, [])
            ended.append(step.only(index))
            if len(ended) == count:
                best = max(waiting.pop(row), key=lambda hypothesis: float(hypothesis.score))
                yield replace(best, changed=torch.zeros_like(best.changed))


def decode_hypotheses(
    engine: Engine,
    noise: NoiseSchedule,
    embeddings: Tensor,
    options: DecodingConfig,
    *,
    lengths: Tensor | None = None,
    batch_size: int = 64,
    apart: float = 0.0,
    drawn: int = 0,
) -> Iterator[Step]:
    """Decode every hypothesis of each vector; ``final`` says that a hypothesis is finished.

    Unless ``lengths`` are given, the hypotheses of a vector have its likeliest lengths, each of which differs from the
    others by more than the share ``apart``. Then come ``drawn`` more of the same lengths, whose tokens are drawn at
    random whatever the strategy.
    """
    strategy = BLIND[options.strategy]
    likeliest = _hypotheses_per_vector(engine, options, lengths)
    count = likeliest + drawn
    wanted, scores = (
        part[:, torch.arange(count) % likeliest] for part in _lengths(engine, embeddings, lengths, likeliest, apart)
    )
    by_chance = options
    if options.strategy not in SAMPLING:
        by_chance = options.model_copy(update={"temperature": _DRAW_TEMPERATURE})
    if options.strategy == "writer":  # each canvas is written many times at once
        batch_size = max(1, _BEAMS_PER_ROW * batch_size // options.beams)
    flat = wanted.flatten()
    candidate = torch.arange(count, device=flat.device).repeat(len(embeddings))
    draws = candidate >= likeliest
    for length, draw in sorted(set(zip(flat.tolist(), draws.tolist(), strict=True))):
        for chosen in ((flat == length) & (draws == draw)).nonzero()[:, 0].split(batch_size):
            rows = chosen // count
            yield from strategy(
                Canvases(
                    engine,
                    noise,
                    embeddings[rows],
                    length,
                    by_chance if draw else options,
                    rows=rows,
                    candidate=candidate[chosen],
                    length_score=scores.flatten()[chosen],
                    draws=draw,
                )
            )


def _hypotheses_per_vector(engine: Engine, options: DecodingConfig, lengths: Tensor | None) -> int:
    """Return how many hypotheses differ: other lengths make some, and so does chance."""
    if options.strategy in SAMPLING:
        return options.hypotheses
    if lengths is not None or engine.config.canvas == "fixed":
        return 1
    return min(options.hypotheses, engine.config.canvas_length)


def _lengths(
    engine: Engine, embeddings: Tensor, given: Tensor | None, count: int, apart: float
) -> tuple[Tensor, Tensor]:
    """Return the length of each hypothesis and its log-probability, both (n, count): the likeliest lengths first."""
    if engine.config.canvas == "fixed":
        given = torch.full((len(embeddings),), engine.config.canvas_length)
    if given is not None:
        wanted = given.to(embeddings.device)[:, None].expand(-1, count)
        return wanted, torch.zeros(wanted.shape, device=embeddings.device)
    scores = engine.length_logits(embeddings).float().log_softmax(-1)
    lengths = torch.arange(1, scores.shape[1] + 1, device=scores.device)
    left, chosen = scores, []
    for _ in range(count):
        likeliest = lengths[left.argmax(1)][:, None]
        chosen.append(likeliest)
        # These come again only after all others: more hypotheses than lengths begin again with the likeliest.
        left = left - _BEHIND_ALL_OTHERS * ((lengths - likeliest).abs() <= apart * likeliest)
    wanted = torch.cat(chosen, dim=1)
    return wanted, scores.gather(1, wanted - 1)
