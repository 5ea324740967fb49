"""The state of a guided search for one vector: hypotheses, what can be tried next, and which moves have helped so far.

Plain bookkeeping: no model, no encoder.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

import numpy as np

from unembed.config import GuidedConfig
from unembed.decoding.guided.edits import SlotBook, compare
from unembed.decoding.guided.fluency import FluencyScore
from unembed.decoding.guided.forecast import Draft, Forecast
from unembed.decoding.guided.hypothesis import Attempt, Hypothesis, Ids, Proposal
from unembed.decoding.guided.memory import COMPOSE, EditMemory, Effect
from unembed.model import NGrams

# Proposals of the next hypothesis in the beam compete as if they came this much later in its list.
_DELAY_PER_RANK = 3
_SMALLEST_GAIN = 1e-5
# How much of the record of moves is kept from one round to the next; the rest is what was assumed at first.
_KEPT_RECORD = 0.9
# Rounds without progress after which the search goes on from another first hypothesis, as long as there are any; and
# the share of the remaining distance that counts as progress.
_ROUNDS_PER_START, _PROGRESS = 12, 0.05
# Combinations whose vectors are forecast before some of them are embedded.
_CONSIDERED = 200
# Where vectors can be drafted: how many combinations, and how many proposals of each move, are looked at closely.
_COMBINATIONS_DRAFTED, _DRAFTED_PER_MOVE = 96, 32
# Every so many texts are chosen by how often their move has helped, the others by the score that they promise.
_BY_SHARE = 3
# Looking ahead: changes in a row, how many are drawn each time, how many of these are drafted, and changed on.
_STEPS_AHEAD, _CHANGES_AHEAD, _DRAFTED_AHEAD, _STATES_AHEAD = 4, 120, 48, 5
# The beam becomes wider by one each time that so many rounds have brought no gain.
_ROUNDS_PER_WIDTH = 4
# In these rounds without gain, phrases are exchanged before anything else is tried: where the words are right and their
# order is not, other changes do not help.
REORDER = "reorder"
_ROUNDS_OF_EXCHANGES = range(4, 8)
_FIRST = 1e6
# Rounds without gain after which a change is tried anew that was tried on a relative of the hypothesis.
_ROUNDS_TRUSTED = 3
# Hypotheses beyond the beam whose fluency is found out, because they might belong into it.
_CONTENDERS = 2
# How much each edit of a combination is assumed to disappoint at first, and how fast that is learnt.
_FIRST_COST, _COST_RATE = 0.002, 0.03


class Search:
    """Keeps the best hypotheses of one vector, and decides which changes to try."""

    def __init__(
        self,
        config: GuidedConfig,
        random: np.random.Generator,
        priors: Mapping[str, tuple[float, float]],
        target: np.ndarray,
        draft: Draft | None = None,
        expected_length: float = 0.0,
        ngrams: NGrams | None = None,
    ) -> None:
        """Start without any hypothesis.

        Args:
            config: when the search ends, and how much it tries.
            random: a stream of its own.
            priors: by the name of each move, the successes and attempts that are assumed before it was ever tried.
            target: (d,) the vector that is inverted, normalised.
            draft: estimates vectors of texts without the encoder.
            expected_length: the number of tokens that the text should have, as far as the vector says.
            ngrams: says how natural the order of a text's tokens is.
        """
        self.config = config
        self.random = random
        self.beam: list[Hypothesis] = []
        self.best: Hypothesis | None = None
        """Of all."""
        self.texts_embedded = 0
        self.passes = 0
        self._parents: list[Hypothesis] = []
        self._pool: list[Hypothesis] = []
        self._seen: set[Ids] = set()
        self._slots = SlotBook()
        self._fluency = FluencyScore(config.fluency, expected_length)
        self._memory = EditMemory(target, self._fluency)
        self._ngrams = ngrams
        self._forecast = Forecast(len(target), draft)
        self._target = target
        self._cost = _FIRST_COST
        self._priors = priors
        self._record = {move: list(prior) for move, prior in priors.items()}
        self._starts: list[Hypothesis] = []
        self._leader: Hypothesis | None = None
        self._rounds_without_best = 0
        # Since the search went on from another start.
        self._rounds_without_gain = self._rounds_without_progress = 0
        self._progress = -np.inf

    @property
    def finished(self) -> bool:
        """Whether the target or a limit is reached, or there is no hypothesis to change."""
        return (
            self.best is None
            or self.best.cosine >= self.config.target_cosine
            or self.texts_embedded >= self.config.call_limit
            or self._rounds_without_best >= self.config.round_patience
        )

    def score(self, hypothesis: Hypothesis) -> float:
        """Return what hypotheses are ranked by: nearness and fluency. Nothing beats one that reaches the target."""
        reached = hypothesis.cosine >= self.config.target_cosine
        return hypothesis.cosine + (1.0 if reached else float(self._fluency(hypothesis.fluency, len(hypothesis.ids))))

    def order_fluency(self, texts: Sequence[Ids]) -> np.ndarray:
        """Return what the order of their tokens adds to the fluency of texts (n,), as far as it is known."""
        return np.zeros(len(texts)) if self._ngrams is None else self._ngrams.fluency(texts)

    def is_new(self, ids: Ids) -> bool:
        """Return whether this text is new, and remember it."""
        new = ids not in self._seen
        self._seen.add(ids)
        return new

    def choose(self) -> list[Attempt]:
        """Take the combinations that promise to be the best so far, then single changes, more of the better moves."""
        promise: dict[Ids, float] = {}
        for parent in self.beam:
            promise |= self._rank(parent)
        attempts = self._combine()
        chances = self.chances()
        if self._rounds_without_gain in _ROUNDS_OF_EXCHANGES and REORDER in chances:
            chances[REORDER] = _FIRST
        order = {move: self._in_turn(move) for move in chances}
        waiting = {move: next(turns, None) for move, turns in order.items()}
        taken = dict.fromkeys(chances, 0)
        while len(attempts) < self.config.proposals:
            available = {move: attempt for move, attempt in waiting.items() if attempt is not None}
            if not available:
                break
            if promise and len(attempts) % _BY_SHARE:
                move = max(available, key=lambda name: promise.get(available[name].ids, -np.inf))
            else:
                # Each move in proportion to its chance: the one that is furthest behind its share comes next.
                move = min(available, key=lambda name: (taken[name] + 1) / chances[name])
            attempts.append(available[move])
            taken[move] += 1
            waiting[move] = next(order[move], None)
        for move, attempt in waiting.items():  # not this time: back to the top of its list
            if attempt is not None and attempt.parent is not None:
                proposal = Proposal(attempt.ids, attempt.fluency - attempt.parent.fluency)
                attempt.parent.proposals[move].append(proposal)
        if not attempts:
            self._rounds_without_gain = self._rounds_without_best = self.config.round_patience
        return attempts

    def look_ahead(self, parent: Hypothesis, change: Callable[[Ids, int], Iterable[Ids]]) -> list[Proposal]:
        """Change a hypothesis several times in a row, without the encoder: the forecast decides what is changed on.

        Args:
            parent: where to begin.
            change: returns up to so many changed versions of a text.

        Returns:
            The texts that were looked at closely, the most promising last; none while the search gains without it.
        """
        if not self._rounds_without_gain:
            return []
        found: dict[Ids, float] = {}
        states: list[Ids] = [parent.ids]
        for _ in range(_STEPS_AHEAD):
            changed = (text for ids in states for text in change(ids, _CHANGES_AHEAD // len(states)))
            new = [ids for ids in dict.fromkeys(changed) if ids not in found and ids not in self._seen]
            if not new:
                break
            proposals = [Proposal(*each) for each in zip(new, self.order_fluency(new).tolist(), strict=True)]
            at_a_glance = self._expect(parent, proposals)
            kept = [proposals[index] for index in np.argsort(at_a_glance)[-_DRAFTED_AHEAD:]]
            drafted = self._expect(parent, kept, closely=True)
            found.update({proposal.ids: score for proposal, score in zip(kept, drafted, strict=True)})
            states = sorted(found, key=found.__getitem__)[-_STATES_AHEAD:]
        return [Proposal(ids) for ids in sorted(found, key=found.__getitem__)]

    def chances(self) -> dict[str, float]:
        """Return how often each move has helped, mostly in the last rounds."""
        return {move: successes / attempts for move, (successes, attempts) in self._record.items()}

    def _combine(self) -> list[Attempt]:
        """Return the combinations of known and drafted edits that are expected to beat the leader."""
        if self._leader is None:
            return []
        combinations = [pair for parent in self._parents for pair in self._memory.combine(parent, self._cost)]
        combinations.sort(key=lambda pair: -pair[0])
        sums: dict[Ids, tuple[float, Attempt]] = {}
        for score, attempt in combinations:
            if attempt.ids not in self._seen:
                sums.setdefault(attempt.ids, (score, attempt))
            if len(sums) == _CONSIDERED:
                break
        if not sums:
            return []
        ranked = self._with_forecast(self._leader, list(sums.values()))
        if self._forecast.drafts:
            few = [sums[attempt.ids] for _, attempt in ranked[:_COMBINATIONS_DRAFTED]]
            ranked = self._with_forecast(self._leader, few, closely=True)
        least = self.score(self._leader)
        return [attempt for score, attempt in ranked[: self.config.combinations] if score >= least]

    def _with_forecast(
        self, leader: Hypothesis, sums: list[tuple[float, Attempt]], *, closely: bool = False
    ) -> list[tuple[float, Attempt]]:
        """Rank combinations by two predictions: the sum of their edits' effects, and the forecast from all texts."""
        forecast = self._expect(leader, [(attempt.ids, attempt.fluency) for _, attempt in sums], closely=closely)
        means = [((score + other) / 2, attempt) for (score, attempt), other in zip(sums, forecast, strict=True)]
        return sorted(means, key=lambda pair: -pair[0])

    def _expect(self, centre: Hypothesis, texts: Sequence[tuple[Ids, float]], *, closely: bool = False) -> list[float]:
        """Return the scores that texts should have, given their fluency, around a similar hypothesis."""
        vectors = self._forecast.predict(centre.ids, centre.vector, [ids for ids, _ in texts], closely=closely)
        return self._scores(vectors, texts)

    def _scores(self, vectors: np.ndarray, texts: Sequence[tuple[Ids, float]]) -> list[float]:
        """Return the scores of texts with these vectors, given their fluency."""
        cosines = vectors @ self._target / np.linalg.norm(vectors, axis=1)
        fluency, lengths = np.array([(fluency, len(ids)) for ids, fluency in texts]).T
        scores: list[float] = (cosines + self._fluency(fluency, lengths)).tolist()
        return scores

    def _rank(self, parent: Hypothesis) -> dict[Ids, float]:
        """Put those proposals of each move last that should come nearest to the target.

        Returns:
            The scores that the texts promise which were looked at closely.
        """
        proposals = [proposal for move in parent.proposals.values() for proposal in move]
        if not proposals:
            return {}
        # Whole texts, so that those of several parents can be compared.
        texts = [(ids, parent.fluency + fluency) for ids, fluency in proposals]
        score = dict(zip(proposals, self._expect(parent, texts), strict=True))
        for ranked in parent.proposals.values():
            ranked.sort(key=score.__getitem__)
        closer: dict[Proposal, float] = {}
        if self._forecast.drafts:
            first = {move: ranked[-_DRAFTED_PER_MOVE:] for move, ranked in parent.proposals.items()}
            named = [(move, proposal) for move, of_move in first.items() for proposal in of_move]
            looked_at = [proposal for _, proposal in named]
            ids = [proposal.ids for proposal in looked_at]
            vectors = self._forecast.predict(parent.ids, parent.vector, ids, closely=True)
            texts = [(ids, parent.fluency + fluency) for ids, fluency in looked_at]
            closer = dict(zip(looked_at, self._scores(vectors, texts), strict=True))
            if parent is self._leader:
                self._guess(parent, named, vectors)
            for move, best in first.items():
                best.sort(key=closer.__getitem__)
                parent.proposals[move][-_DRAFTED_PER_MOVE:] = best
        for move, ranked in parent.proposals.items():
            parent.proposals[move] = _spread(parent.ids, ranked)
        return {proposal.ids: value for proposal, value in closer.items()}

    def _guess(self, parent: Hypothesis, named: Sequence[tuple[str, Proposal]], vectors: np.ndarray) -> None:
        """Let combinations use changes that were drafted only, given their moves and drafted vectors (n, d)."""
        slots = frozenset(parent.slots)
        guesses = {}
        for (move, proposal), vector in zip(named, vectors, strict=True):
            changes = compare(parent.ids, proposal.ids)
            if changes:
                effect = Effect(vector - parent.vector, proposal.fluency, move, slots)
                guesses[self._slots.edit(parent.slots, changes)] = effect
        self._memory.guess(guesses)

    def _in_turn(self, move: str) -> Iterator[Attempt]:
        """Yield the proposals of a move, those of the best hypotheses sooner."""
        turns = {parent: _DELAY_PER_RANK * rank for rank, parent in enumerate(self.beam)}
        while True:
            able = [parent for parent in self.beam if parent.proposals.get(move)]
            if not able:
                return
            parent = min(able, key=turns.__getitem__)
            turns[parent] += 1
            ids, fluency = parent.proposals[move].pop()
            if not self._is_known(parent, ids):
                yield Attempt(ids, parent.fluency + fluency, parent, move)

    def _is_known(self, parent: Hypothesis, ids: Ids) -> bool:
        """Whether a change was tried on a near relative: where it pays, it will be part of a combination.

        A search that is stuck tries it again: among other words, a change may do something else.
        """
        if ids in self._seen or self._rounds_without_gain >= _ROUNDS_TRUSTED:
            return ids in self._seen
        return self._memory.knows(self._slots.edit(parent.slots, compare(parent.ids, ids)), parent)

    def add(self, attempts: Sequence[tuple[Attempt, Hypothesis]]) -> None:
        """Take in what was embedded, and learn from it which edits and which moves help."""
        for move, prior in self._priors.items():
            self._record[move] = [
                _KEPT_RECORD * value + (1 - _KEPT_RECORD) * first
                for value, first in zip(self._record[move], prior, strict=True)
            ]
        self._forecast.learn([each.ids for _, each in attempts], [each.vector for _, each in attempts])
        self._pool = list(dict.fromkeys([*self.beam, *self._parents]))
        for attempt, hypothesis in attempts:
            self._pool.append(hypothesis)
            if attempt.parent is None:
                hypothesis.slots = self._slots.first(hypothesis.ids)
                self._starts.append(hypothesis)
                continue
            changes = compare(attempt.parent.ids, hypothesis.ids)
            hypothesis.slots = self._slots.after(attempt.parent.slots, changes)
            improved = self._beats(hypothesis, self._leader)
            if attempt.move == COMPOSE:
                disappointment = max(0.0, attempt.expected - hypothesis.cosine) / len(attempt.used)
                self._cost += _COST_RATE * (disappointment - self._cost)
            else:
                self._record[attempt.move][1] += 1.0
                difference = hypothesis.vector - attempt.parent.vector
                fluency, slots = attempt.fluency - attempt.parent.fluency, attempt.parent.slots
                effect = Effect(difference, fluency, attempt.move, frozenset(slots))
                self._memory.learn(self._slots.edit(slots, changes), effect)
            for move in (attempt.used or (attempt.move,)) if improved else ():
                self._record[move][0] += 1.0

    def contenders(self) -> list[Hypothesis]:
        """Return the hypotheses that the denoiser must judge before the best are selected."""
        ranked = sorted(self._pool, key=self.score, reverse=True)
        count = len(self.beam) + _CONTENDERS if self.beam else len(ranked)
        return [hypothesis for hypothesis in ranked[:count] if not hypothesis.judged]

    def select(self) -> None:
        """Choose which hypotheses to change next, of those that were taken in."""
        judged = [hypothesis for hypothesis in self._pool if hypothesis.judged]
        if not judged:
            return
        if self._leader is None:
            self._fluency.surprise = -float(np.mean([each.fluency / len(each.ids) for each in judged]))
        if self._ngrams is not None:
            self._fluency.approach(max(each.cosine for each in judged))
        ranked = sorted(judged, key=self.score, reverse=True)
        gained, best = self._beats(ranked[0], self._leader), self._beats(ranked[0], self.best)
        self._rounds_without_gain = 0 if gained else self._rounds_without_gain + 1
        leading = self.score(ranked[0])
        if leading > self._progress + _PROGRESS * (1 - ranked[0].cosine):
            self._progress, self._rounds_without_progress = leading, 0
        else:
            self._rounds_without_progress += 1
        self._rounds_without_best = 0 if best else self._rounds_without_best + 1
        self._leader, self.best = ranked[0], ranked[0] if best else self.best
        known = dict.fromkeys([*self._parents, *self._pool])
        self._parents = sorted(known, key=self.score, reverse=True)[: self.config.parents]
        if self._rounds_without_progress >= _ROUNDS_PER_START and self._starts:
            self._start_again()
        else:
            # A search that is stuck looks further.
            self.beam = ranked[: self.config.beam + self._rounds_without_gain // _ROUNDS_PER_WIDTH]

    def _start_again(self) -> None:
        """Go on from the best first hypothesis that has not been a start; after the last, from the best of all."""
        self._starts = [each for each in self._starts if each is not self._origin(self._leader)]
        self._starts.sort(key=self.score)
        self._leader = self._starts.pop() if self._starts else self.best
        assert self._leader is not None
        self.beam = self._parents = [self._leader]
        self._rounds_without_gain = self._rounds_without_progress = 0
        self._progress = -np.inf

    def _beats(self, hypothesis: Hypothesis, other: Hypothesis | None) -> bool:
        return other is None or self.score(hypothesis) > self.score(other) + _SMALLEST_GAIN

    @staticmethod
    def _origin(hypothesis: Hypothesis | None) -> Hypothesis | None:
        """Return the first hypothesis that this one comes from."""
        while hypothesis is not None and hypothesis.parent is not None:
            hypothesis = hypothesis.parent
        return hypothesis


def _spread(ids: Ids, proposals: Sequence[Proposal]) -> list[Proposal]:
    """Take proposals in turns: first the best of those that add the same tokens, then the second best of each."""
    own = set(ids)
    count: dict[Ids, int] = {}
    turns = []
    for proposal in reversed(proposals):
        added = tuple(token for token in proposal.ids if token not in own)
        turns.append(count.get(added, 0) if added else 0)
        count[added] = turns[-1] + 1
    order = sorted(range(len(turns)), key=turns.__getitem__)
    return [proposals[-1 - index] for index in reversed(order)]
