"""Which candidates bring a template nearest to a vector. Asks what embeds texts, as rarely as it can.

A slot with few candidates is tried out. With many, some are embedded, a regression predicts the others, and the best
of these are embedded next (``screening.py``). The differences that edits of several slots make to a vector add up:
combinations are predicted by these sums, and only the best are embedded.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from unembed.filling.likelihood import Combination
from unembed.filling.memory import FilledVectors
from unembed.filling.screening import Screen
from unembed.filling.steps import Steps

# Cosines at which nothing better is looked for: of vectors as they are, and of vectors that are rounded.
_EXACT, _EXACT_ROUNDED = 0.9999, 0.9995
# Candidates that are embedded before the first prediction, and between two predictions.
_FIRST, _MORE = 768, 384
# Where all candidates can be embedded, the likeliest are first; then each time as many as before.
_FEWEST = 128
_SHARE_AT_RANDOM = 0.5
# Rounds without a better candidate after which the search in a slot ends, once no prediction comes near the best.
_PATIENCE = 3
_ERRORS_AWAY = 3.0
_COMBINED, _COMBINATIONS = 192, 256
_ROUNDS = 5
_LATER_CANDIDATES = 48


@dataclass(frozen=True)
class SlotCandidates:
    """The candidates of a slot, and what is known about them before anything is embedded."""

    screen: Screen
    likelihood: np.ndarray | None
    """(n,) log-probability of each candidate by the denoiser; None where a canvas does not hold the template."""
    count: int


class SlotSearch:
    """Searches for one vector; what it embeds is kept for the next."""

    def __init__(
        self,
        vectors: FilledVectors,
        slots: Sequence[SlotCandidates],
        target: np.ndarray,
        *,
        calls: int,
        seed: int,
        rounded: bool = False,
        interrupted: Callable[[], bool] = lambda: False,
    ) -> None:
        self._vectors, self._slots, self._target = vectors, slots, target
        self._calls, self._interrupted = calls, interrupted
        self._random = np.random.default_rng(seed)
        self._begun = len(vectors)
        self.enough = _EXACT_ROUNDED if rounded else _EXACT
        """A cosine at which nothing better is looked for."""

    @property
    def _left(self) -> int:
        return max(0, self._calls - (len(self._vectors) - self._begun))

    def run(self, start: Combination) -> Steps[list[tuple[Combination, float]]]:
        """Search from a combination; return what was embedded with its cosine, best first."""
        parent = start
        for turn in range(_ROUNDS):
            tried = []
            for slot in range(len(self._slots)):
                tried.append((yield from self._try_slot(parent, slot, first=turn == 0)))
                if self._ended():
                    break
            if len(self._slots) > 1 and len(tried) == len(self._slots):
                yield from self._try_together(parent, tried)
            best = self._ranked()[0][0]
            if best == parent or len(self._slots) == 1 or self._ended():
                break
            parent = best
        return self._ranked()

    def _ended(self) -> bool:
        return self._interrupted() or not self._left or self._best() >= self.enough

    def _best(self) -> float:
        return max(self._vectors.cosines(self._target).values(), default=-1.0)

    def _ranked(self) -> list[tuple[Combination, float]]:
        return sorted(self._vectors.cosines(self._target).items(), key=lambda item: -item[1])

    def _try_slot(self, parent: Combination, slot: int, *, first: bool) -> Steps[np.ndarray]:
        """Embed candidates of a slot beside the parent's others; return those that are known, best first."""
        own = self._slots[slot]
        if not first:
            promising = self._promising(slot)[: min(_LATER_CANDIDATES, self._left)]
            return (yield from self._try_all(parent, slot, promising))
        later = len(self._slots) - slot
        allowance = self._left if len(self._slots) == 1 else self._left // (2 * later)
        everything = np.arange(own.count) if own.likelihood is None else np.argsort(-own.likelihood, kind="stable")
        if own.count <= allowance:
            return (yield from self._try_all(parent, slot, everything))
        return (yield from self._try_some(parent, slot, allowance))

    def _try_all(self, parent: Combination, slot: int, candidates: np.ndarray) -> Steps[np.ndarray]:
        """Embed candidates in their order, until one is exactly right."""
        scores = np.empty(0, dtype=np.float32)
        while len(scores) < len(candidates) and not self._interrupted() and scores.max(initial=-1) < self.enough:
            more = candidates[len(scores) : len(scores) + max(_FEWEST, len(scores))]
            scores = np.concatenate([scores, (yield from self._score(parent, slot, more))])
        return candidates[np.argsort(-scores, kind="stable")]

    def _try_some(self, parent: Combination, slot: int, allowance: int) -> Steps[np.ndarray]:
        """Embed some candidates, predict the others, embed the best of these, and so on."""
        own = self._slots[slot]
        # What earlier vectors have embedded costs nothing.
        known = np.union1d(self._start(own, min(_FIRST, allowance)), self._vectors.known_beside(parent, slot))
        scores = yield from self._score(parent, slot, known)
        spent, idle = min(_FIRST, allowance), 0
        while spent < allowance and not self._interrupted() and scores.max() < self.enough:
            predicted, error = own.screen.predict(known, scores)
            predicted[known] = -np.inf
            if idle >= _PATIENCE and predicted.max() + _ERRORS_AWAY * error < scores.max():
                break
            chosen = np.argsort(-predicted, kind="stable")[: min(_MORE, allowance - spent, own.count - len(known))]
            if not len(chosen):
                break
            fresh = yield from self._score(parent, slot, chosen)
            idle = 0 if fresh.max() > scores.max() else idle + 1
            known, scores = np.concatenate([known, chosen]), np.concatenate([scores, fresh])
            spent += len(chosen)
        return known[np.argsort(-scores, kind="stable")]

    def _score(self, parent: Combination, slot: int, candidates: np.ndarray) -> Steps[np.ndarray]:
        """Embed candidates of a slot beside the parent's others; return their cosines."""
        edits = [(*parent[:slot], int(each), *parent[slot + 1 :]) for each in candidates]
        cosines: np.ndarray = (yield from self._vectors.embed_in_parts(edits)) @ self._target
        return cosines

    def _start(self, own: SlotCandidates, count: int) -> np.ndarray:
        """Choose the candidates to embed first: some likely ones, some at random."""
        likely = np.empty(0, dtype=np.int64)
        if own.likelihood is not None:
            likely = np.argsort(-own.likelihood, kind="stable")[: int(count * (1 - _SHARE_AT_RANDOM))]
        others = np.setdiff1d(np.arange(own.count), likely)
        drawn = self._random.choice(others, size=min(count - len(likely), len(others)), replace=False)
        return np.concatenate([likely, drawn])

    def _promising(self, slot: int) -> np.ndarray:
        """Return the candidates of a slot in the order of the best combination that each stands in."""
        best: dict[int, float] = {}
        for combination, cosine in self._ranked():
            best.setdefault(combination[slot], cosine)
        return np.array(list(best), dtype=np.int64)

    def _try_together(self, parent: Combination, tried: Sequence[np.ndarray]) -> Steps[None]:
        """Embed the combinations that should come nearest, by the sum of what each edit changes."""
        origin = self._vectors.embed([parent])[0]
        sums, combinations = origin[None], [parent]
        for slot, candidates in enumerate(tried):
            chosen = candidates[:_COMBINED]
            edits = [(*parent[:slot], int(each), *parent[slot + 1 :]) for each in chosen]
            changes = (yield from self._vectors.embed_in_parts(edits)) - origin
            longer = (sums[:, None] + changes[None]).reshape(-1, len(origin))
            scores = longer @ self._target / np.maximum(np.linalg.norm(longer, axis=1), 1e-9)
            kept = np.argsort(-scores, kind="stable")[:_COMBINATIONS]
            sums = longer[kept]
            combinations = [
                (*combinations[each // len(chosen)][:slot], int(chosen[each % len(chosen)]), *parent[slot + 1 :])
                for each in kept
            ]
        fresh = self._vectors.missing(combinations)[: self._left]
        yield from self._vectors.embed_in_parts(fresh)
