"""Guided decoding: with the encoder at hand, search for the text whose vector is the given one.

Blind hypotheses are embedded; round after round, the best of them are changed here and there, by the denoiser, by the
encoder's gradient and by chance, and the changed texts are embedded in turn. What comes nearest is kept.
"""

import time
from collections.abc import Iterator
from dataclasses import replace

import numpy as np
import torch
from torch import Tensor

from unembed.config import DecodingConfig
from unembed.decoding.blind import decode_hypotheses
from unembed.decoding.canvases import random_streams
from unembed.decoding.moves import Proposer
from unembed.decoding.oracle import Ids, Oracle
from unembed.decoding.search import Attempt, Hypothesis, Search
from unembed.decoding.step import Step
from unembed.engine import Engine
from unembed.model import NoiseSchedule

# Vectors that are searched together, so that their passes and embeddings share batches.
_TOGETHER = 16
# The first hypotheses differ in length by more than this share: a search rarely gets from one length to a far one, and
# a step longer or shorter is soon found.
_APART = 0.1


def decode_guided(
    engine: Engine,
    noise: NoiseSchedule,
    embeddings: Tensor,
    options: DecodingConfig,
    *,
    oracle: Oracle,
    lengths: Tensor | None = None,
    batch_size: int = 64,
) -> Iterator[Step]:
    """Yield the passes of the blind start, then one step per vector and round, with the best text so far.

    The score of those steps is the cosine of the text's vector with the one given.
    """
    for start in range(0, len(embeddings), _TOGETHER):
        rows = slice(start, start + _TOGETHER)
        part = None if lengths is None else lengths[rows]
        for step in _search(engine, noise, embeddings[rows], options, oracle, part, batch_size):
            yield replace(step, rows=step.rows + start)


def _search(
    engine: Engine,
    noise: NoiseSchedule,
    embeddings: Tensor,
    options: DecodingConfig,
    oracle: Oracle,
    lengths: Tensor | None,
    batch_size: int,
) -> Iterator[Step]:
    config = options.guided
    deadline = time.monotonic() + (config.seconds or float("inf"))
    targets = torch.nn.functional.normalize(embeddings.float(), dim=-1).cpu().numpy()
    streams = random_streams(embeddings, [0] * len(embeddings), options.seed)
    searches = {row: Search(config, stream) for row, stream in enumerate(streams)}
    blind = options.model_copy(
        update={"strategy": config.start, "candidates": max(options.candidates, config.candidates)}
    )
    first: list[tuple[int, Attempt]] = []
    hypotheses = decode_hypotheses(
        engine, noise, embeddings, blind, lengths=lengths, batch_size=batch_size, apart=_APART
    )
    for step in hypotheses:
        yield replace(step, final=torch.zeros_like(step.final))
        for place in step.final.nonzero()[:, 0].tolist():
            row = int(step.rows[place])
            ids = tuple(engine.vocabulary.text_ids(step.canvas[place].tolist()))
            first.append((row, Attempt(ids, fluency=float(step.score[place]))))
            searches[row].passes += int(step.passes[place])
    # In an order that does not depend on which lengths were decoded together.
    first.sort(key=lambda one: (one[0], one[1].ids))
    _embed(oracle, targets, searches, first, lengths)
    proposer = Proposer(engine, noise, embeddings, oracle, gradient=config.gradient, resize=lengths is None)
    shown: dict[int, Ids] = dict.fromkeys(searches, ())
    for number in range(config.rounds + 1):
        over = number == config.rounds or time.monotonic() >= deadline
        ending = {row: search for row, search in searches.items() if over or search.finished}
        searches = {row: search for row, search in searches.items() if row not in ending}
        proposer.expand(ending, propose=False)
        proposer.expand(searches)
        for row, search in sorted((ending | searches).items()):
            yield _show(search, row, shown[row], final=row in ending)
            shown[row] = search.best.ids if search.best else ()
        if not searches:
            return
        attempts = [(row, attempt) for row, search in searches.items() for attempt in search.choose()]
        _embed(oracle, targets, searches, attempts, lengths)


def _embed(
    oracle: Oracle,
    targets: np.ndarray,
    searches: dict[int, Search],
    attempts: list[tuple[int, Attempt]],
    lengths: Tensor | None,
) -> None:
    """Embed the texts that are new, all together, and give each search what came of its own."""
    settled = oracle.settle([attempt.ids for _, attempt in attempts])
    fresh: list[tuple[int, Attempt, Ids]] = []
    for (row, attempt), ids in zip(attempts, settled, strict=True):
        fits = ids is not None and (lengths is None or len(ids) == int(lengths[row]))
        # A first hypothesis is taken as it is: with none there would be nothing to go on from.
        ids = ids if fits else attempt.ids if attempt.parent is None else None
        if ids and searches[row].is_new(ids):
            fresh.append((row, attempt, ids))
    vectors = oracle.embed([ids for _, _, ids in fresh]) if fresh else np.empty((0, targets.shape[1]))
    found: dict[int, list[tuple[Hypothesis, Attempt]]] = {row: [] for row in searches}
    for (row, attempt, ids), vector in zip(fresh, vectors, strict=True):
        hypothesis = Hypothesis(ids, float(vector @ targets[row]), attempt.fluency)
        found[row].append((hypothesis, attempt))
    for row, search in searches.items():
        search.encoder_calls += len(found[row])
        search.add(found[row])


def _show(search: Search, row: int, before: Ids, *, final: bool) -> Step:
    """Tell what is the best text so far."""
    best = search.best
    ids = () if best is None else best.ids
    confidence = [] if best is None or best.confidence is None else best.confidence
    changed = [place >= len(before) or before[place] != token for place, token in enumerate(ids)]
    return Step(
        rows=torch.tensor([row]),
        candidate=torch.zeros(1, dtype=torch.long),
        canvas=torch.tensor([ids], dtype=torch.long),
        changed=torch.tensor([changed], dtype=torch.bool),
        confidence=torch.tensor([confidence], dtype=torch.float),
        mask_rate=torch.zeros(1),
        passes=torch.tensor([search.passes]),
        score=torch.tensor([0.0 if best is None else best.cosine]),
        final=torch.tensor([final]),
        encoder_calls=torch.tensor([search.encoder_calls]),
    )
