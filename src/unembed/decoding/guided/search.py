"""The state of a guided search for one vector: hypotheses, what can be tried next, and which moves have helped so far.

Plain bookkeeping: no model, no encoder.
"""

from collections.abc import Iterable, Iterator, Mapping

import numpy as np

from unembed.config import GuidedConfig
from unembed.decoding.guided.edits import SlotBook, compare
from unembed.decoding.guided.memory import EditMemory
from unembed.decoding.guided.hypothesis import Attempt, Hypothesis, Ids, Proposal

# Proposals of the next hypothesis in the beam compete as if they came this much later in its list.
_DELAY_PER_RANK = 3
_SMALLEST_GAIN = 1e-5
# A text that differs by more than this share is clearly longer or shorter; single moves rarely lead there.
_CLEARLY = 0.1


class Search:
    """Keeps the best hypotheses of one vector, and decides which changes to try."""

    def __init__(
        self,
        config: GuidedConfig,
        random: np.random.Generator,
        priors: Mapping[str, tuple[float, float]],
        target: np.ndarray,
    ) -> None:
        """Start without any hypothesis.

        Args:
            config: when the search ends, and how much it tries.
            random: a stream of its own.
            priors: by the name of each move, the successes and attempts that are assumed before it was ever tried.
        """
        self.config = config
        self.target = target
        self.slots = SlotBook()
        self.memory = EditMemory()
        self.elders: list[Hypothesis] = []
        self.log: list = []
        self.cost = 0.002
        self.random = random
        self.beam: list[Hypothesis] = []
        self.best: Hypothesis | None = None
        self.encoder_calls = 0
        self.passes = 0
        self._rounds_without_gain = 0
        self._seen: set[Ids] = set()
        self._record = {move: list(prior) for move, prior in priors.items()}

    @property
    def finished(self) -> bool:
        """Whether the target is reached, nothing better came up for long, or there is no hypothesis to change."""
        return (
            self.best is None
            or max(h.cosine for h in self.pool) >= self.config.target_cosine
            or self._rounds_without_gain >= self.config.patience
        )

    def score(self, hypothesis: Hypothesis) -> float:
        """Return what hypotheses are ranked by: nearness and fluency."""
        return hypothesis.cosine + self.config.fluency * hypothesis.fluency

    def is_new(self, ids: Ids) -> bool:
        """Return whether this text is new, and remember it."""
        new = ids not in self._seen
        self._seen.add(ids)
        return new

    def choose(self) -> list[Attempt]:
        """Take the most promising proposals of the beam, more of the moves that have helped."""
        attempts = self._compose()
        chances = {move: successes / attempts for move, (successes, attempts) in self._record.items()}
        order = {move: self._in_turn(move) for move in chances}
        waiting = {move: next(turns, None) for move, turns in order.items()}
        taken = dict.fromkeys(chances, 0)
        while len(attempts) < self.config.proposals:
            available = [move for move, attempt in waiting.items() if attempt is not None]
            if not available:
                break
            # Each move in proportion to its chance: the one that is furthest behind its share comes next.
            move = min(available, key=lambda name: (taken[name] + 1) / chances[name])
            attempt = waiting[move]
            assert attempt is not None
            attempts.append(attempt)
            taken[move] += 1
            waiting[move] = next(order[move], None)
        for move, attempt in waiting.items():  # not this time: back to the top of its list
            if attempt is not None and attempt.parent is not None:
                attempt.parent.proposals[move].append(Proposal(attempt.ids, attempt.fluency - attempt.parent.fluency))
        if not attempts:
            self._rounds_without_gain = self.config.patience
        return attempts

    def _compose(self) -> list[Attempt]:
        """Return the combinations of known edits that promise most."""
        if not self.config.compositions or self.best is None:
            return []
        candidates = []
        for parent in self.elders:
            for cosine, ids, change, count in self.memory.combine(parent, self.target, self.config.fluency, self.cost):
                fluency = parent.fluency + change
                score = cosine + self.config.fluency * fluency - self.cost * count
                candidates.append((score, cosine, ids, fluency, count, parent))
        candidates.sort(key=lambda each: -each[0])
        attempts, texts = [], set()
        for score, cosine, ids, fluency, count, parent in candidates:
            if len(attempts) == self.config.compositions or score < self.score(self.best):
                break
            if ids in self._seen or ids in texts:
                continue
            texts.add(ids)
            attempts.append(Attempt(ids, fluency, parent, "compose", (cosine, count)))
        return attempts

    def _in_turn(self, move: str) -> Iterator[Attempt]:
        """Yield the proposals of a move, those of the best hypotheses sooner."""
        turns = {parent: _DELAY_PER_RANK * rank for rank, parent in enumerate(self.beam)}
        while True:
            able = [parent for parent in self.beam if parent.proposals.get(move)]
            if not able:
                return
            parent = min(able, key=turns.__getitem__)
            turns[parent] += 1
            ids, change = parent.proposals[move].pop()
            if self._seen_edit(parent, ids):
                continue
            yield Attempt(ids, parent.fluency + change, parent, move)

    def _seen_edit(self, parent: Hypothesis, ids: Ids) -> bool:
        """Whether what a change does is known from a relative: if it pays, it is part of a combination."""
        return ids in self._seen or self.memory.knows(self.slots.edit(parent.slots, compare(parent.ids, ids)))

    def add(self, hypotheses: Iterable[Hypothesis]) -> None:
        """Take in hypotheses that were embedded, learn which moves helped, and choose which ones to change next."""
        before = -1.0 if self.best is None else self.best.cosine
        pool = list(self.beam)
        for hypothesis in hypotheses:
            pool.append(hypothesis)
            parent = hypothesis.parent
            if parent is None:
                hypothesis.slots = self.slots.first(hypothesis.ids)
                continue
            changes = compare(parent.ids, hypothesis.ids)
            hypothesis.slots = self.slots.after(parent.slots, changes)
            if hypothesis.move != "compose":
                self.memory.learn(self.slots.edit(parent.slots, changes), hypothesis.vector - parent.vector, hypothesis.fluency - parent.fluency)
            else:
                cosine, count = hypothesis.predicted
                self.cost += 0.03 * (max(0.0, (cosine - hypothesis.cosine) / count) - self.cost)
            record = self._record.get(hypothesis.move)
            if record:
                record[1] += 1.0
                if hypothesis.cosine > parent.cosine + _SMALLEST_GAIN:
                    record[0] += 1.0
            self.log.append((hypothesis.move, hypothesis.predicted, hypothesis.cosine, parent.cosine, before))
        self.pool = pool
        self.before = before

    def contenders(self) -> list[Hypothesis]:
        """Return the hypotheses whose fluency should be known before the best are chosen."""
        ranked = sorted(self.pool, key=lambda hypothesis: -self.score(hypothesis))
        return [hypothesis for hypothesis in ranked[: self.config.beam + 2] if not hypothesis.judged]

    def settle(self) -> None:
        """Choose the best hypotheses of those taken in."""
        pool = self.pool
        if not pool:
            return
        old = -1e9 if self.best is None else self.score(self.best)
        known = [hypothesis for hypothesis in pool if hypothesis.judged]
        self.best = max(known, key=self.score)
        self._rounds_without_gain = 0 if self.score(self.best) > old + _SMALLEST_GAIN else self._rounds_without_gain + 1
        self.elders = sorted({*self.elders, *pool}, key=lambda hypothesis: -self.score(hypothesis))[: self.config.elders]
        self.beam = self._select(known)

    def _select(self, pool: list[Hypothesis]) -> list[Hypothesis]:
        """Keep the best by cosine and fluency together; the best by cosine and a clearly longer or shorter one stay."""
        return sorted(pool, key=lambda hypothesis: -self.score(hypothesis))[: self.config.beam]
