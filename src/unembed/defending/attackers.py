"""Attackers on defended vectors, from naive to adaptive. Knows inverters and vectors, no original texts.

Each attacker knows which chain was applied. What it knows beyond that is in its name and its description.
"""

import logging
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial

import numpy as np

from unembed.adaptation import OwnTexts, Pairs
from unembed.config import DecodingConfig, GuidedConfig
from unembed.defences import Chain
from unembed.defences.key import identity_of
from unembed.defences.mixing import Mixing
from unembed.defences.rotations import CellRotation
from unembed.defending.encoder import DefendedEncoder
from unembed.defending.known_pairs import Map, with_pairs, with_pairs_by_cell, without_pairs
from unembed.defending.unmixing import unmix
from unembed.encoders import Encoder, EncoderDescription
from unembed.errors import UnembedError
from unembed.inverter import Inverter
from unembed.progress import OnProgress

RELEASES = 16
"""How many releases of fresh noise are averaged."""
PAIRS = (0, 10, 100, 500)
"""Known pairs that are tried against a rotation; as many as the vector has numbers are tried, too."""
BLIND = DecodingConfig(candidates=1)
"""One length: five give a little more and take three times as long."""

_ADAPTED = ("denoised", "trained", "guided")
DESCRIPTIONS = {
    "naive": "the inverter as it is",
    "denoised": "a linear map, fitted on texts of the attacker's own, brings the vectors back before they are inverted",
    "trained": "as denoised, and readout and length head are trained further on such vectors",
    "guided": "searches with the encoder, whose vectors pass through the public part of the defence",
    "averaged": f"has {RELEASES} releases of each vector and averages them",
    "unmixed": "has the whole store and computes what the vectors were before they were mixed",
    "pairs": "knows the texts of so many stored vectors, and computes the rotation from them (Procrustes)",
    "unpaired": "knows no text, and aligns the whole store with vectors of texts of its own",
    "key": "has the key",
}
"""What each attacker has and does."""


@dataclass(frozen=True)
class Case:
    """Defended vectors, and what an attacker may have besides."""

    chain: Chain
    defended: np.ndarray
    """(m, k) that are attacked."""
    original: np.ndarray
    """(m, d): only to make further releases, and never given to an attacker."""
    stored: np.ndarray
    """(n, k): the whole defended store."""
    rows: np.ndarray
    """(m,): where in it the attacked ones are."""
    known: tuple[np.ndarray, np.ndarray]
    """(p, k) and (p, d): other vectors of the store, defended and as they were. Their texts may have become known."""


@dataclass(frozen=True)
class Attempt:
    """What one attacker made of the vectors, in order; of the first ones only, if it is slow."""

    name: str
    """For example ``guided`` or ``100 pairs``."""
    kind: str
    """A key of ``DESCRIPTIONS``."""
    ids: list[list[int]]
    texts: list[str]
    seconds: float
    """For each vector."""
    problem: str = ""
    """Why there is nothing."""


@dataclass(frozen=True)
class Attackers:
    """What all attackers share: an inverter, the encoder, and texts of their own."""

    inverter: Inverter
    encoder: Encoder | None
    own: OwnTexts
    kinds: tuple[str, ...] = tuple(DESCRIPTIONS)
    """Those that are tried."""
    guided: int = 40
    """Vectors that the guided one tries."""
    calls: int = 100
    """Texts that it embeds for each."""
    seed: int = 0
    on_progress: OnProgress = field(default=lambda label, more, total: None)
    _last: dict[str, Inverter] = field(default_factory=dict)

    def run(self, case: Case, *, guided: bool = True) -> Iterator[Attempt]:
        """Let every attacker try whom the chain gives a chance; without ``guided``, the slow one does not."""
        plans = [plan for plan in self._plans(case) if plan[1] in self.kinds and (guided or plan[1] != "guided")]
        adapted, problem = None, ""
        if any(kind in _ADAPTED for _, kind, _ in plans):
            try:
                adapted = self._adapt(case.chain)
            except UnembedError as error:
                problem = error.problem
        for name, kind, make in plans:
            if problem and kind in _ADAPTED:
                yield Attempt(name, kind, [], [], 0.0, problem)
                continue
            begun = time.perf_counter()
            try:
                with _quiet():
                    attempt = self._attempt(name, kind, make(adapted), begun)
            except UnembedError as error:
                attempt = Attempt(name, kind, [], [], 0.0, error.problem)
            yield attempt

    def _plans(self, case: Case) -> "Iterator[tuple[str, str, Callable[[Inverter | None], _Plan]]]":
        chain = case.chain
        yield "naive", "naive", lambda adapted: _Plan(self.inverter, chain.lift_without_key(case.defended))
        if chain.transforms and not chain.keyed:
            yield "denoised", "denoised", partial(self._denoised, case)
        if not chain.keyed:  # undefended vectors, too: some of what training brings has nothing to do with a defence
            yield "trained", "trained", lambda adapted: _Plan(_given(adapted), case.defended)
        if chain.fresh and not chain.keyed:
            yield f"averaged {RELEASES}", "averaged", lambda adapted: _Plan(self.inverter, _average(case))
        if any(isinstance(transform, Mixing) for transform in chain.transforms) and len(chain.transforms) == 1:
            yield "unmixed", "unmixed", lambda adapted: _Plan(self.inverter, _unmixed(case))
        if chain.keyed:
            yield from self._against_key(case)
        elif self.encoder is not None and self.guided:
            yield "guided", "guided", partial(self._guided, case)

    def _against_key(self, case: Case) -> "Iterator[tuple[str, str, Callable[[Inverter | None], _Plan]]]":
        chain = case.chain
        for count in sorted({*PAIRS, chain.dim}):
            kind = "pairs" if count else "unpaired"
            if count <= len(case.known[0]):
                yield f"{count} pairs", kind, partial(self._with_pairs, case, count)
        yield "key known", "key", lambda adapted: _Plan(self.inverter, chain.lift(case.defended))

    def _with_pairs(self, case: Case, count: int, _adapted: Inverter | None) -> "_Plan":
        undo = self._rotation(case, count)
        return _Plan(self.inverter, undo(case.defended))

    def _rotation(self, case: Case, count: int) -> Map:
        defended, original = (side[:count] for side in case.known)
        if not count:
            return without_pairs(case.stored, self.own.vectors, self.seed)
        cells = [transform for transform in case.chain.transforms if isinstance(transform, CellRotation)]
        if cells:
            generator = np.random.default_rng(self.seed)
            return with_pairs_by_cell(defended, original, case.stored, round(cells[-1].value), generator)
        return with_pairs(defended, original)

    def _denoised(self, case: Case, adapted: Inverter | None) -> "_Plan":
        given = _given(adapted)
        assert given.adaptation is not None
        return _Plan(self.inverter, given.adaptation.there.map_array(case.defended))

    def _guided(self, case: Case, adapted: Inverter | None) -> "_Plan":
        inverter = _given(adapted)
        assert self.encoder is not None
        assert inverter.adaptation is not None
        there = inverter.adaptation.there.map_array
        encoder = DefendedEncoder(self.encoder, case.chain, inverter.info.encoder, there)
        options = DecodingConfig(strategy="guided", guided=GuidedConfig(calls=self.calls))
        return _Plan(inverter, case.defended[: self.guided], options, encoder)

    def _adapt(self, chain: Chain) -> Inverter:
        """Return the inverter, adapted to vectors of the attacker's own texts after the same kind of defence."""
        imitation = chain.imitation(self.seed + 1)
        key = identity_of(imitation)
        if key not in self._last:  # takes a minute; the next store often has the very same chain
            self._last.clear()
            self._last[key] = self._adapt_to(imitation)
        return self._last[key]

    def _adapt_to(self, chain: Chain) -> Inverter:
        defended = chain.apply(self.own.vectors)
        described = EncoderDescription.of_vectors(f"{self.inverter.info.encoder.name} with {chain}", defended)
        pairs = Pairs(described, self.own.ids, defended, self.own.vectors, self.own.origin)
        return self.inverter.adapt_to(pairs, quick=True, seed=self.seed)

    def _attempt(self, name: str, kind: str, plan: "_Plan", begun: float) -> Attempt:
        found = []
        for inversion in plan.inverter.stream([plan.vectors], plan.options, encoder=plan.encoder):
            found.append(inversion)
            self.on_progress(name, 1, len(plan.vectors))
        seconds = (time.perf_counter() - begun) / max(1, len(found))
        return Attempt(name, kind, [each.ids for each in found], [each.text for each in found], seconds)


@dataclass(frozen=True)
class _Plan:
    """What is inverted, and with what."""

    inverter: Inverter
    vectors: np.ndarray
    options: DecodingConfig = BLIND
    encoder: Encoder | None = None


def _average(case: Case) -> np.ndarray:
    chain = case.chain
    releases = [chain.apply(case.original, release=release) for release in range(RELEASES)]
    return chain.lift_without_key(np.mean(releases, axis=0))


def _unmixed(case: Case) -> np.ndarray:
    (mixing,) = case.chain.transforms
    assert isinstance(mixing, Mixing)
    unmixed: np.ndarray = unmix(case.stored, mixing)[case.rows]
    return unmixed


def _given(adapted: Inverter | None) -> Inverter:
    assert adapted is not None
    return adapted


@contextmanager
def _quiet() -> Iterator[None]:
    """Keep the inverter from warning that the vectors look strange: here they are meant to."""
    logger = logging.getLogger("unembed.inverter")
    level = logger.level
    logger.setLevel(logging.ERROR)
    try:
        yield
    finally:
        logger.setLevel(level)
