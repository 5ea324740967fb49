"""The state of a guided search for one vector: hypotheses, what can be tried next, and what has paid so far.

Plain data and bookkeeping: no model, no encoder.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

import numpy as np

from unembed.config import GuidedConfig
from unembed.decoding.oracle import Ids

# What a kind of move is assumed to have achieved before it was tried, as (successes, attempts).
_KINDS: dict[str, tuple[float, float]] = {
    "gradient": (2.0, 4.0),
    "substitute": (2.0, 4.0),
    "insert": (1.0, 4.0),
    "delete": (1.0, 4.0),
    "span": (1.0, 4.0),
    "reorder": (1.0, 4.0),
    "merge": (3.0, 4.0),
}
# A parent one place further down the beam is asked as if its proposals stood so many places further down its list.
_PLACES_PER_RANK = 3
_SMALLEST_GAIN = 1e-5
# A text that differs by more than this share is clearly longer or shorter; single moves rarely lead there.
_CLEARLY = 0.1


@dataclass
class Hypothesis:
    """A text that was embedded."""

    ids: Ids
    cosine: float
    fluency: float
    """Mean log-probability of its tokens, each given the vector and most of the others; the parent's until known."""
    confidence: list[float] | None = None
    """Probability of each token; None until the denoiser was asked."""
    proposals: dict[str, list[Ids]] = field(default_factory=dict)
    """Changed texts by kind of move, the most promising last."""


@dataclass(frozen=True)
class Attempt:
    """A text on its way to the encoder."""

    ids: Ids
    fluency: float
    """As far as it is known."""
    parent: Hypothesis | None = None
    kind: str = ""
    """The move that made it of its parent."""


class Search:
    """Keeps the best hypotheses of one vector, and decides which changes to try."""

    def __init__(self, config: GuidedConfig, random: np.random.Generator) -> None:
        self.config = config
        self.random = random
        self.beam: list[Hypothesis] = []
        self.best: Hypothesis | None = None
        self.encoder_calls = 0
        self.passes = 0
        self._idle = 0
        self._seen: set[Ids] = set()
        self._record = {kind: list(assumed) for kind, assumed in _KINDS.items()}

    @property
    def finished(self) -> bool:
        """Whether the target is reached, or nothing better was found for long, or there is nothing to go on from."""
        return self.best is None or self.best.cosine >= self.config.target_cosine or self._idle >= self.config.patience

    def is_new(self, ids: Ids) -> bool:
        """Whether this text was not tried before; from now on it was."""
        new = ids not in self._seen
        self._seen.add(ids)
        return new

    def choose(self) -> list[Attempt]:
        """Take the most promising proposals of the beam, more of the kinds of move that have paid."""
        chances = {kind: successes / attempts for kind, (successes, attempts) in self._record.items()}
        order = {kind: self._in_turn(kind) for kind in chances}
        waiting = {kind: next(turns, None) for kind, turns in order.items()}
        taken = dict.fromkeys(chances, 0)
        attempts: list[Attempt] = []
        while len(attempts) < self.config.proposals:
            open_kinds = [kind for kind, attempt in waiting.items() if attempt is not None]
            if not open_kinds:
                break
            # Each kind in proportion to its chance: the one that is furthest behind its share comes next.
            kind = min(open_kinds, key=lambda one: (taken[one] + 1) / chances[one])
            attempt = waiting[kind]
            assert attempt is not None
            attempts.append(attempt)
            taken[kind] += 1
            waiting[kind] = next(order[kind], None)
        for kind, attempt in waiting.items():  # not this time: back to the top of its list
            if attempt is not None and attempt.parent is not None:
                attempt.parent.proposals[kind].append(attempt.ids)
        if not attempts:
            self._idle = self.config.patience
        return attempts

    def _in_turn(self, kind: str) -> Iterator[Attempt]:
        places = {id(parent): _PLACES_PER_RANK * rank for rank, parent in enumerate(self.beam)}
        while True:
            able = [parent for parent in self.beam if parent.proposals.get(kind)]
            if not able:
                return
            parent = min(able, key=lambda one: places[id(one)])
            places[id(parent)] += 1
            yield Attempt(parent.proposals[kind].pop(), parent.fluency, parent, kind)

    def add(self, found: Iterable[tuple[Hypothesis, Attempt]]) -> None:
        """Take in embedded hypotheses, learn which moves paid, and choose whom to go on from."""
        before = -1.0 if self.best is None else self.best.cosine
        pool = list(self.beam)
        gains: dict[int, list[Hypothesis]] = {}
        for hypothesis, attempt in found:
            pool.append(hypothesis)
            if attempt.parent is None:
                continue
            record = self._record[attempt.kind]
            record[1] += 1.0
            if hypothesis.cosine > attempt.parent.cosine + _SMALLEST_GAIN:
                record[0] += 1.0
                gains.setdefault(id(attempt.parent), []).append(hypothesis)
        for parent in self.beam:
            parent.proposals["merge"] = merge(parent.ids, gains.get(id(parent), []))
        if not pool:
            return
        self.best = max(pool, key=lambda one: one.cosine)
        self._idle = 0 if self.best.cosine > before + _SMALLEST_GAIN else self._idle + 1
        self.beam = self._select(pool)

    def _select(self, pool: list[Hypothesis]) -> list[Hypothesis]:
        """Keep the best by cosine and fluency together; the best by cosine and a clearly longer or shorter one stay."""
        assert self.best is not None
        ranked = sorted(pool, key=lambda one: -(one.cosine + self.config.fluency * one.fluency))
        length = len(self.best.ids)
        others = [one for one in ranked if abs(len(one.ids) - length) > _CLEARLY * length]
        kept = [self.best, *others[:1]][: self.config.beam]
        kept += [one for one in ranked if all(one is not other for other in kept)][: self.config.beam - len(kept)]
        return sorted(kept, key=lambda one: -one.cosine)


def merge(parent: Ids, children: list[Hypothesis]) -> list[Ids]:
    """Join the changes of children that each improved on their parent by substitutions, the best ones last."""
    changes: list[dict[int, int]] = []
    for child in sorted(children, key=lambda one: -one.cosine):
        if len(child.ids) != len(parent):
            continue
        change = {place: new for place, (old, new) in enumerate(zip(parent, child.ids, strict=True)) if old != new}
        if not any(change.keys() & other.keys() for other in changes):
            changes.append(change)
    merged = []
    for count in range(2, min(len(changes), 4) + 1):
        ids = list(parent)
        for change in changes[:count]:
            for place, token in change.items():
                ids[place] = token
        merged.append(tuple(ids))
    if len(changes) > 2:
        merged.insert(0, tuple({**dict(enumerate(parent)), **changes[0], **changes[2]}.values()))
    return merged
