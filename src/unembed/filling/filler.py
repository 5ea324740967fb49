"""Fills the slots of a template: candidates in, ranked answers with probabilities out. Knows no files and no HTTP."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import torch

from unembed.filling.certainty import Verdict, Way, features, judge, limit_free, probabilities
from unembed.filling.free import FreeWriter
from unembed.filling.kinds import Candidates, Free
from unembed.filling.pieces import read_pieces
from unembed.filling.ranking import FillingTask, FillingTools, Ranked
from unembed.filling.steps import Steps, finish
from unembed.filling.template import Template

CALLS = 6000
"""Texts that are embedded per vector, at most, unless the user says otherwise."""
# Candidates that are looked at to find out how many tokens a slot has.
_LOOKED_AT = 256


@dataclass(frozen=True)
class Answer:
    """One way to fill the slots."""

    values: dict[str, str]
    """What stands in each slot."""
    text: str
    """The filled template."""
    probability: float
    """That all slots are right, as calibrated on known texts."""
    cosine: float | None
    """Of the filled template's vector with the one given; by the surrogate where the encoder was not asked."""
    likelihood: float | None
    """The denoiser's log-probability of the values; None where the encoder was asked."""


@dataclass(frozen=True)
class Filling:
    """The answers for one vector."""

    answers: list[Answer]
    """Best first."""
    verdict: Verdict
    """The best answer's probability in words."""
    absent: float
    """Probability that none of the candidates is right."""
    candidates: int
    """How many ways to fill the slots there were."""
    encoder_calls: int
    """Texts that the encoder embedded for this vector."""
    surrogate_calls: int
    """Texts that its surrogate embedded."""


class Filler:
    """Fills one template for vector after vector; what one of them has embedded, the next need not."""

    def __init__(
        self,
        tools: FillingTools,
        template: Template,
        candidates: Sequence[Candidates],
        *,
        calls: int = CALLS,
        top: int = 10,
        seed: int = 0,
        interrupted: Callable[[], bool] = lambda: False,
    ) -> None:
        self._tools, self._template, self._given = tools, template, candidates
        self._calls, self._top, self._seed, self._interrupted = calls, top, seed, interrupted
        self._only_task: FillingTask | None = None
        """The one for all vectors; what is written freely depends on the vector."""
        self._free = [slot for slot, each in enumerate(candidates) if isinstance(each, Free)]
        self.way: Way = "encoder" if tools.oracle else "surrogate" if tools.surrogate else "likelihood"

    def fill(self, vector: np.ndarray) -> Filling:
        """Return the answers for a vector (d,)."""
        return finish(self.steps(vector))

    def steps(self, vector: np.ndarray) -> Steps[Filling]:
        """Fill with pauses, for a caller who does other work in between, or stops before the end."""
        task, ranked = yield from self._rank(vector)
        order, shares, absent = probabilities(self.way, self.describe(ranked), task.count)
        if self._free:
            exact = ranked.cosines[order[0]] if ranked.cosines is not None and self.way == "encoder" else 0.0
            shares, absent = limit_free(shares, absent, float(exact))
        answers = []
        for place, share in zip(order[: self._top].tolist(), shares.tolist(), strict=False):
            values = task.values(ranked.combinations[place])
            answers.append(
                Answer(
                    values=dict(zip(self._template.names, values, strict=True)),
                    text=self._template.fill(values),
                    probability=share,
                    cosine=None if ranked.cosines is None else float(ranked.cosines[place]),
                    likelihood=None if ranked.likelihoods is None else float(ranked.likelihoods[place]),
                )
            )
        return Filling(
            answers=answers,
            verdict=judge(answers[0].probability, absent),
            absent=absent,
            candidates=task.count,
            encoder_calls=ranked.encoder_calls,
            surrogate_calls=ranked.surrogate_calls,
        )

    def rank(self, vector: np.ndarray) -> tuple[FillingTask, Ranked]:
        """Return the best combinations of candidates for a vector (d,), without a judgement."""
        return finish(self._rank(vector))

    def _rank(self, vector: np.ndarray) -> Steps[tuple[FillingTask, Ranked]]:
        task = yield from self._task_for(vector)
        ranked = yield from task.rank(vector, calls=self._calls, seed=self._seed, interrupted=self._interrupted)
        return task, ranked

    def describe(self, ranked: Ranked) -> np.ndarray:
        """Return what combinations are judged by: (n, F)."""
        return features(ranked.cosines, None if self.way == "encoder" else ranked.likelihoods)

    def _task_for(self, vector: np.ndarray) -> Steps[FillingTask]:
        if self._only_task is not None:
            return self._only_task
        given = torch.from_numpy(np.asarray(vector, dtype=np.float32)).to(self._tools.device)
        counts = [self._usual_count(slot) for slot in range(len(self._given))] if self._free else []
        candidates: list[Sequence[str]] = []
        for slot, each in enumerate(self._given):
            if isinstance(each, Free):
                each = yield from self._writer.write(given, self._template, slot, each.tokens, counts)
            candidates.append(each)
        pieces = []
        for slot, own in enumerate(candidates):
            pieces.append((yield from read_pieces(self._tools.tokenizer, self._template, slot, own)))
        task = FillingTask(self._tools, self._template, candidates, pieces, self._free)
        if not self._free:
            self._only_task = task
        return task

    @cached_property
    def _writer(self) -> FreeWriter:
        return FreeWriter(self._tools.engine, self._tools.noise, self._tools.tokenizer)

    def _usual_count(self, slot: int) -> int:
        """Return how many tokens most candidates of a slot have."""
        given = self._given[slot]
        if isinstance(given, Free):
            return given.tokens[0]
        counts = finish(read_pieces(self._tools.tokenizer, self._template, slot, given[:_LOOKED_AT])).counts
        return max(1, int(np.bincount(counts).argmax()))
