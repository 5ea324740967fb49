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
from unembed.filling.pieces import Pieces, read_filled
from unembed.filling.screening import Screen
from unembed.filling.search import SlotCandidates, SlotSearch
from unembed.filling.template import Template
from unembed.measures.vectors import normalise
from unembed.model import NoiseSchedule

# Answers whose vectors are computed at the encoder's full precision; answers that are read token by token.
_VERIFIED, _READ = 32, 128
# Without the encoder, its surrogate embeds so many combinations, the likeliest.
_BY_SURROGATE = 1024


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


@dataclass(frozen=True)
class Ranked:
    """Ways to fill the slots, the best ones."""

    combinations: list[Combination]
    cosines: np.ndarray | None
    """(n,) with the vector given; by the surrogate where the encoder was not asked."""
    likelihoods: np.ndarray | None
    """(n,) log-probabilities; None where no canvas holds the template."""
    encoder_calls: int = 0
    surrogate_calls: int = 0


class FillingTask:
    """A template with a list of candidates for each slot."""

    def __init__(self, tools: FillingTools, template: Template, candidates: Sequence[Sequence[str]]) -> None:
        self._tools, self.template, self.candidates = tools, template, candidates
        self._pieces = [
            Pieces(tools.tokenizer, template, slot, own) for slot, own in enumerate(candidates)
        ]
        self._likelihood = SlotLikelihood(
            tools.engine, tools.noise, tools.tokenizer, template, candidates, self._pieces
        )

    @property
    def count(self) -> int:
        """How many ways there are to fill the slots."""
        return prod(map(len, self.candidates))

    def values(self, combination: Combination) -> list[str]:
        """Return what stands in each slot."""
        return [own[index] for own, index in zip(self.candidates, combination, strict=True)]

    @cached_property
    def _screens(self) -> list[Screen]:
        return [Screen(pieces, self._tools.table) for pieces in self._pieces]

    @cached_property
    def _vectors(self) -> FilledVectors:
        assert self._tools.oracle is not None
        dim = self._tools.oracle.encoder.description.dim
        return FilledVectors(self.template, self.candidates, self._tools.oracle.embed, dim)

    def rank(
        self, vector: np.ndarray, *, calls: int, seed: int, interrupted: Callable[[], bool] = lambda: False
    ) -> Ranked:
        """Rank the ways to fill the slots for a vector (d,)."""
        given = torch.from_numpy(np.asarray(vector, dtype=np.float32)).to(self._tools.device)
        if self._tools.oracle is None:
            return self._rank_blind(given, normalise(vector))
        return self._rank_with(self._tools.oracle, given, normalise(vector), calls, seed, interrupted)

    def _rank_with(
        self,
        oracle: TextOracle,
        given: torch.Tensor,
        target: np.ndarray,
        calls: int,
        seed: int,
        interrupted: Callable[[], bool],
    ) -> Ranked:
        """Search with the encoder, and compare the best at its full precision."""
        singles: list[np.ndarray | None] = [None] * len(self.candidates)
        start: Combination = (0,) * len(self.candidates)
        if self._likelihood.possible:
            found, together = self._likelihood.score(given)
            singles, start = list(found), together[0][0]
        slots = [
            SlotCandidates(screen, single, len(own))
            for screen, single, own in zip(self._screens, singles, self.candidates, strict=True)
        ]
        before = len(self._vectors)
        search = SlotSearch(self._vectors, slots, target, calls=calls, seed=seed, interrupted=interrupted)
        best = [combination for combination, _ in search.run(start)[:_VERIFIED]]
        embedded = len(self._vectors) - before
        vectors = self._vectors.embed(best)
        if oracle.rounds:
            vectors = normalise(oracle.embed_exactly([self._vectors.write(each) for each in best]))
            embedded += len(best)
        likelihoods = self._likelihood.read(given, best) if self._likelihood.possible else None
        return Ranked(best, vectors @ target, likelihoods, encoder_calls=embedded)

    def _rank_blind(self, given: torch.Tensor, target: np.ndarray) -> Ranked:
        """Rank by the denoiser's likelihood, and by the surrogate's vectors where there is one."""
        self._likelihood.refuse_longer()
        _, together = self._likelihood.score(given)
        surrogate = self._tools.surrogate
        best = [combination for combination, _ in together[: _BY_SURROGATE if surrogate else _READ]]
        if surrogate is None:
            return Ranked(best, None, self._likelihood.read(given, best))
        ids = [read_filled(self._tools.tokenizer, self.template, self.values(each))[0] for each in best]
        cosines = normalise(surrogate.encode_ids(ids)) @ target
        return Ranked(best, cosines, np.array([score for _, score in together[: len(best)]]), surrogate_calls=len(best))
