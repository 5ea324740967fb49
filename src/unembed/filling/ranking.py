"""Ranks the ways to fill a template's slots for one vector: with the encoder, or without it. Knows no probabilities."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from math import prod

import numpy as np
import torch
from tokenizers import Tokenizer

from unembed.decoding import SurrogateEncoder, TextOracle
from unembed.engine import Engine
from unembed.filling.likelihood import Combination, SlotLikelihood
from unembed.filling.memory import FilledVectors
from unembed.filling.pieces import Pieces
from unembed.filling.refining import refine
from unembed.filling.screening import Screen
from unembed.filling.search import SlotCandidates, SlotSearch
from unembed.filling.steps import Steps
from unembed.filling.template import Template
from unembed.measures.vectors import normalise
from unembed.model import NoiseSchedule

# Answers whose vectors are computed at the encoder's full precision.
_VERIFIED = 16
# Without the encoder: answers that are read token by token, and texts that its surrogate embeds.
_READ, _BY_SURROGATE = 12, 1024


@dataclass(frozen=True)
class FillingTools:
    """What an inverter gives for filling."""

    engine: Engine
    noise: NoiseSchedule
    tokenizer: Tokenizer
    table: np.ndarray
    """(tokens, width) token embeddings."""
    oracle: TextOracle | None
    """What embeds texts with the encoder; None without it."""
    surrogate: SurrogateEncoder | None
    device: torch.device

    def embed(self, texts: Sequence[str]) -> np.ndarray:
        """Embed texts as quickly as a search needs it: with the encoder, or else with its surrogate."""
        if self.oracle:
            return self.oracle.embed(texts)
        assert self.surrogate is not None
        return self.surrogate.encode(texts)


@dataclass(frozen=True)
class Ranked:
    """Ways to fill the slots, the best ones."""

    combinations: list[Combination]
    cosines: np.ndarray | None
    """(n,) with the vector given; by the surrogate where the encoder was not asked."""
    likelihoods: np.ndarray | None
    """(n,) log-probabilities by the denoiser; None where the encoder was asked."""
    encoder_calls: int = 0
    surrogate_calls: int = 0


class FillingTask:
    """A template with a list of candidates for each slot."""

    def __init__(
        self,
        tools: FillingTools,
        template: Template,
        candidates: Sequence[Sequence[str]],
        pieces: Sequence[Pieces],
        free: Sequence[int] = (),
    ) -> None:
        """Prepare the search.

        Args:
            tools: of the inverter.
            template: the known text.
            candidates: of each slot.
            pieces: their tokens.
            free: slots for which other texts are tried, too, if the encoder can say which.
        """
        self._tools, self.template, self.candidates, self._free = tools, template, candidates, free
        self._pieces = pieces
        self._likelihood = SlotLikelihood(tools.engine, tools.noise, tools.tokenizer, template, candidates, pieces)

    @property
    def count(self) -> int:
        """How many ways there are to fill the slots."""
        return prod(map(len, self._vectors.candidates))

    def values(self, combination: Combination) -> list[str]:
        """Return what stands in each slot."""
        return self._vectors.values(combination)

    @cached_property
    def _screens(self) -> list[Screen]:
        return [Screen(pieces, self._tools.table) for pieces in self._pieces]

    @cached_property
    def _vectors(self) -> FilledVectors:
        return FilledVectors(self.template, self.candidates, self._tools.embed)

    def rank(
        self, vector: np.ndarray, *, calls: int, seed: int, interrupted: Callable[[], bool] = lambda: False
    ) -> Steps[Ranked]:
        """Rank the ways to fill the slots for a vector (d,), with pauses."""
        given = torch.from_numpy(np.asarray(vector, dtype=np.float32)).to(self._tools.device)
        oracle = self._tools.oracle
        if oracle is None:
            self._likelihood.refuse_longer()
        singles, together = self._likelihood.score(given) if self._likelihood.possible else ([], [])
        likeliest = [combination for combination, _ in together]
        yield
        if oracle is None and self._tools.surrogate is None:
            return Ranked(likeliest[:_READ], None, self._likelihood.read(given, likeliest[:_READ]))
        slots = [
            SlotCandidates(screen, singles[slot] if singles else None, len(own))
            for slot, (screen, own) in enumerate(zip(self._screens, self.candidates, strict=True))
        ]
        before = len(self._vectors)
        search = SlotSearch(
            self._vectors,
            slots,
            normalise(vector),
            calls=calls if oracle else min(calls, _BY_SURROGATE),
            seed=seed,
            rounded=oracle is not None and oracle.rounds,
            interrupted=interrupted,
        )
        scored = yield from search.run(likeliest[0] if likeliest else (0,) * len(slots))
        if oracle and self._free:
            left = calls - (len(self._vectors) - before)
            scored = yield from refine(
                oracle, self._vectors, self._free, scored, normalise(vector), calls=left, enough=search.enough
            )
        found = [combination for combination, _ in scored]
        best = found[:_VERIFIED] if oracle else list(dict.fromkeys([*found[:_READ], *likeliest[:_READ]]))
        vectors = self._vectors.embed(best)
        embedded = len(self._vectors) - before
        if oracle and oracle.rounds:
            vectors = normalise(oracle.embed_exactly([self._vectors.write(each) for each in best]))
            embedded += len(best)
        return Ranked(
            best,
            vectors @ normalise(vector),
            None if oracle else self._likelihood.read(given, best),
            encoder_calls=embedded if oracle else 0,
            surrogate_calls=0 if oracle else embedded,
        )
