"""The rounds of a search, for several vectors that share batches. Knows the order of events, no single move."""

import time
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import replace
from typing import Self

import numpy as np
import torch
from torch import Tensor

from unembed.config import DecodingConfig
from unembed.decoding.blind import decode_hypotheses
from unembed.decoding.canvases import random_streams
from unembed.decoding.guided.filler import MaskFiller
from unembed.decoding.guided.hypothesis import Attempt, Hypothesis, Ids
from unembed.decoding.guided.moves import PRIORS, Subject, Tools, expand, judge
from unembed.decoding.guided.oracle import Oracle
from unembed.decoding.guided.search import Search
from unembed.decoding.step import Step
from unembed.engine import Engine
from unembed.model import NoiseSchedule

TOGETHER = 16
"""Vectors that are searched together, so that their passes and embeddings share batches."""
# The first hypotheses differ in length by more than this share: a search rarely gets from one length to a far one, and
# soon to one that is a token longer or shorter.
_APART = 0.1
# By how much the cosine of a rounded vector may be wrong.
_ROUNDING = 1e-3


def decode_guided(
    engine: Engine,
    noise: NoiseSchedule,
    embeddings: Tensor,
    options: DecodingConfig,
    *,
    oracle: Oracle,
    lengths: Tensor | None = None,
    batch_size: int = 64,
    interrupted: Callable[[], bool] = lambda: False,
) -> Iterator[Step]:
    """Search for any number of vectors, a few at a time; yield the steps of :class:`SearchRounds`.

    As soon as it is ``interrupted``, every search that goes on ends with its best text, and no further one begins.
    """
    for start in range(0, len(embeddings), TOGETHER):
        if interrupted():
            return
        part = slice(start, start + TOGETHER)
        known = None if lengths is None else lengths[part]
        rounds = SearchRounds(
            engine, noise, embeddings[part], options, oracle=oracle, lengths=known, batch_size=batch_size
        )
        for steps in rounds:
            if interrupted():
                rounds.stop()
            yield from (replace(step, rows=step.rows + start) for step in steps)


class SearchRounds:
    """A search with the encoder or its surrogate, as an iterator: each item is a round, with the steps that it led to.

    The first items are the passes of the blind start. Each later one has a step for each vector that is still searched,
    with its best text so far; the score of such a step is the cosine of the text's vector with the one given. All the
    work is done between one item and the next, so that the rounds of several searches can take turns.
    """

    def __init__(
        self,
        engine: Engine,
        noise: NoiseSchedule,
        embeddings: Tensor,
        options: DecodingConfig,
        *,
        oracle: Oracle,
        lengths: Tensor | None = None,
        batch_size: int = 64,
    ) -> None:
        """Prepare the search; the arguments are those of :func:`unembed.decoding.decode`."""
        self.engine, self.noise, self.embeddings, self.options = engine, noise, embeddings, options
        self.oracle, self.lengths, self.batch_size = oracle, lengths, batch_size
        self._targets = torch.nn.functional.normalize(embeddings.float(), dim=-1).cpu().numpy()
        streams = random_streams(embeddings, [0] * len(embeddings), options.seed)
        expected = _expected_lengths(engine, embeddings) if options.search.free_tokens else [0.0] * len(embeddings)
        ngrams = oracle.ngrams if options.search.ngrams else None
        self._searches = {
            row: Search(options.search, stream, PRIORS, target, oracle.draft, length, ngrams)
            for row, (stream, target, length) in enumerate(zip(streams, self._targets, expected, strict=True))
        }
        self._stopped: set[int] = set()
        self._rounds = self._run()
        self._seconds = 0.0
        self._resumed = 0.0

    def __iter__(self) -> Self:
        return self

    def __next__(self) -> list[Step]:
        """Take the next round."""
        self._resumed = time.monotonic()
        try:
            with torch.no_grad():
                return next(self._rounds)
        finally:
            self._seconds += time.monotonic() - self._resumed

    def stop(self, rows: Collection[int] | None = None) -> None:
        """End the search for some vectors, or for all: the next round is their last, and gives their best text."""
        self._stopped |= set(self._searches if rows is None else rows)

    def _run(self) -> Iterator[list[Step]]:
        config = self.options.search
        self._tools = Tools(
            MaskFiller(self.engine, self.noise, self.embeddings),
            self.oracle,
            self._targets,
            longest=self.engine.config.canvas_length,
            resize=self.lengths is None,
            gradient=config.gradient,
        )
        yield from self._start()
        shown: dict[int, Ids] = dict.fromkeys(self._searches, ())
        for number in range(config.round_limit + 1):
            over = number == config.round_limit or self._out_of_time()
            ending = {
                row: search for row, search in self._searches.items() if over or search.finished or row in self._stopped
            }
            active = {row: search for row, search in self._searches.items() if row not in ending}
            self._measure_exactly(ending)
            expand(self._tools, active)
            steps = []
            for row, search in sorted(self._searches.items()):
                steps.append(_show(search, row, shown[row], final=row in ending))
                shown[row] = search.best.ids if search.best else ()
            self._searches = active
            yield steps
            if not active:
                return
            going_on = {row: search for row, search in active.items() if row not in self._stopped}
            self._embed([(row, attempt) for row, search in going_on.items() for attempt in search.choose()])

    def _out_of_time(self) -> bool:
        """Whether the time is used up; that between rounds is the caller's and does not count."""
        limit = self.options.search.seconds
        return limit is not None and self._seconds + time.monotonic() - self._resumed >= limit

    def _start(self) -> Iterator[list[Step]]:
        """Decode the first hypotheses blind, and embed them."""
        config = self.options.search
        blind = self.options.model_copy(
            update={
                "strategy": config.start or ("writer" if self.engine.writes else "confidence"),
                "candidates": max(self.options.candidates, config.candidates),
            }
        )
        first: list[tuple[int, Attempt]] = []
        for step in decode_hypotheses(
            self.engine,
            self.noise,
            self.embeddings,
            blind,
            lengths=self.lengths,
            batch_size=self.batch_size,
            apart=_APART,
        ):
            yield [replace(step, final=torch.zeros_like(step.final))]
            for text in step.finished(self.engine.vocabulary):
                first.append((text.row, Attempt(tuple(text.ids), fluency=text.fluency * len(text.ids))))
                self._searches[text.row].passes += text.passes
        # In an order that does not depend on which lengths were decoded together.
        first.sort(key=lambda numbered: (numbered[0], numbered[1].ids))
        self._embed(first)

    def _embed(self, attempts: list[tuple[int, Attempt]]) -> None:
        """Embed the texts that are new, all together, and give each search its own hypotheses."""
        settled = self.oracle.settle([attempt.ids for _, attempt in attempts])
        new: list[tuple[int, Attempt, Ids]] = []
        for (row, attempt), ids in zip(attempts, settled, strict=True):
            fits = ids is not None and (self.lengths is None or len(ids) == int(self.lengths[row]))
            # A first hypothesis is taken as it is: without it there might be nothing to change.
            ids = ids if fits else attempt.ids if attempt.parent is None else None
            if ids and self._searches[row].is_new(ids):
                new.append((row, attempt, ids))
        texts = self.oracle.write([ids for _, _, ids in new])
        vectors = self._vectors(texts, [row for row, _, _ in new])
        tried: dict[int, list[tuple[Attempt, Hypothesis]]] = {row: [] for row in self._searches}
        for (row, attempt, ids), text, vector in zip(new, texts, vectors, strict=True):
            cosine = float(vector @ self._targets[row])
            hypothesis = Hypothesis(ids, text, vector.copy(), cosine, attempt.fluency, attempt.parent, attempt.move)
            tried[row].append((attempt, hypothesis))
        for row, search in self._searches.items():
            search.texts_embedded += len(tried[row])
            search.add(tried[row])
        contenders = ((row, search, each) for row, search in self._searches.items() for each in search.contenders())
        judge(self._tools, [Subject(*contender) for contender in contenders])
        for search in self._searches.values():
            search.select()

    def _vectors(self, texts: list[str], rows: list[int]) -> np.ndarray:
        """Return the vectors of texts: exact ones where the target is nearly reached, so that it is not missed."""
        if not texts:
            return np.empty((0, self._targets.shape[1]))
        vectors = self.oracle.embed(texts)
        cosines = (vectors * self._targets[rows]).sum(1)
        near = np.flatnonzero(cosines >= self.options.search.target_cosine - _ROUNDING)
        if self.oracle.rounds and len(near):
            vectors[near] = self.oracle.embed_exactly([texts[index] for index in near])
            for index in near:
                self._searches[rows[index]].texts_embedded += 1
        return vectors

    def _measure_exactly(self, searches: Mapping[int, Search]) -> None:
        """Replace the rounded vectors of the results."""
        best = [(row, search.best) for row, search in searches.items() if search.best is not None]
        if self.oracle.rounds and best:
            vectors = self.oracle.embed_exactly([hypothesis.text for _, hypothesis in best])
            for (row, hypothesis), vector in zip(best, vectors, strict=True):
                hypothesis.vector, hypothesis.cosine = vector, float(vector @ self._targets[row])
                searches[row].texts_embedded += 1


@torch.no_grad()
def _expected_lengths(engine: Engine, embeddings: Tensor) -> list[float]:
    """Return the mean number of tokens that the length head expects; 0 where an inverter has no such head."""
    if engine.config.canvas == "fixed":
        return [0.0] * len(embeddings)
    probabilities = engine.length_logits(embeddings).float().softmax(-1)
    lengths = torch.arange(1, probabilities.shape[1] + 1, device=probabilities.device)
    expected: list[float] = (probabilities * lengths).sum(1).tolist()
    return expected


def _show(search: Search, row: int, before: Ids, *, final: bool) -> Step:
    """Describe the best text so far."""
    best = search.best
    ids = () if best is None else best.ids
    confidence = [] if best is None or best.confidence is None else best.confidence
    changed = [position >= len(before) or before[position] != token for position, token in enumerate(ids)]
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
        texts_embedded=torch.tensor([search.texts_embedded]),
    )
