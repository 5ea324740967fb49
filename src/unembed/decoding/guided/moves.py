"""What can be changed about a hypothesis: by the denoiser, the readout, the encoder's gradient, and by chance.

A move only proposes texts; which of them are embedded and kept is up to the search.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial

import numpy as np
import torch
from torch import Tensor

from unembed.decoding.guided.filler import MaskFiller, Question
from unembed.decoding.guided.hypothesis import Hypothesis, Ids, Proposal
from unembed.decoding.guided.oracle import Oracle
from unembed.decoding.guided.search import REORDER, Search

# Every fifth position is masked at once: each is judged with most of the text in view, for a fifth of the passes.
_STRIDE = 5
_ALTERNATIVES = 16  # per position or gap
_WORDS = 96  # that the readout misses most
_PLACES = 2  # for each of these words: gaps to put it into, and tokens to put it in place of
_LONGEST_DELETION = 3  # tokens: a word may have as many pieces
_SPANS = 6
_LONGEST_SPAN = 4
_REORDERINGS = 300  # that are drawn in a round
# The least log-probability of a token, also of one that is not scored.
_LOG_FLOOR = -15.0
# Weight of the denoiser's log-probability relative to the estimated gain in cosine.
_LIKELIHOOD_WEIGHT = 0.01
# Weight of what the readout misses relative to the denoiser's log-probability.
_MISSING_WEIGHT = 0.5
# How much less each further choice is worth, in nats: for the same position, and for the same word.
_NEXT_TOKEN, _NEXT_PLACE = 0.3, 2.0


@dataclass
class Subject:
    """A hypothesis that is about to be changed, and the search that it belongs to."""

    row: int
    search: Search
    hypothesis: Hypothesis
    tokens: Tensor = field(default_factory=lambda: torch.empty(0))
    """(C,) the tokens that are scored, in ascending order."""
    scores: Tensor = field(default_factory=lambda: torch.empty(0))
    """(T, C) their log-probabilities at each position."""
    gap_scores: Tensor = field(default_factory=lambda: torch.empty(0))
    """(T + 1, C) their log-probabilities in each gap."""
    missing: Tensor = field(default_factory=lambda: torch.empty(0))
    """(C,) how much the part of the vector that the hypothesis does not explain asks for each."""

    @property
    def ids(self) -> Ids:
        """Its tokens."""
        return self.hypothesis.ids

    @property
    def own(self) -> Tensor:
        """(T,) the log-probability of its own token at each position."""
        return self.pick(self.scores, self.ids)

    @property
    def worth(self) -> Tensor:
        """(T,) how much each of its tokens is supported by the denoiser and missed by the readout."""
        # A rare token that is not scored was put there by the encoder's gradient: the readout is not asked about it.
        return self.own + _MISSING_WEIGHT * self.pick(self.missing.expand_as(self.scores), self.ids, unscored=0.0)

    def pick(self, scores: Tensor, tokens: Sequence[int] | np.ndarray, unscored: float = _LOG_FLOOR) -> Tensor:
        """Return from scores (n, C) those of a token in each row (n,), or of several (n, k)."""
        ids = torch.as_tensor(tokens)
        columns = torch.searchsorted(self.tokens, ids).clamp(max=len(self.tokens) - 1)
        scored = scores.gather(1, columns.view(len(scores), -1)).view(ids.shape).clamp(min=_LOG_FLOOR)
        return scored.masked_fill(self.tokens[columns] != ids, unscored)


@dataclass(frozen=True)
class Tools:
    """What moves work with."""

    filler: MaskFiller
    oracle: Oracle
    targets: np.ndarray
    """(n, d) the vectors that are inverted."""
    longest: int
    """Tokens that a canvas holds."""
    resize: bool = True
    """Whether a text may become longer or shorter."""
    gradient: bool = True
    """Whether the encoder may be asked for its gradient."""


@dataclass(frozen=True)
class Move:
    """One way to change hypotheses."""

    name: str
    prior: tuple[float, float]
    """Successes and attempts that are assumed before the first attempt."""
    propose: Callable[[Tools, list[Subject]], list[list[Proposal]]]
    """Returns changed texts of each hypothesis, the most promising last."""
    possible: Callable[[Tools], bool] = lambda tools: True
    random: bool = False
    """Whether it proposes other texts each time that it is asked."""
    least_chance: float = 0.0
    """It is not asked while it has helped less often than this."""


def expand(tools: Tools, searches: Mapping[int, Search]) -> None:
    """Give the hypotheses in the beams, by the row of their vector, proposals: each move once, or in each round."""
    subjects = [Subject(row, search, parent) for row, search in searches.items() for parent in search.beam]
    if not subjects:
        return
    new = [subject for subject in subjects if not subject.hypothesis.proposals]
    judge(tools, new)
    if tools.resize:
        look_into_gaps(tools, new)
    ask_what_is_missing(tools, new)
    for move in MOVES:
        changed = subjects if move.random else new
        changed = [subject for subject in changed if subject.search.chances()[move.name] >= move.least_chance]
        if changed and move.possible(tools):
            for subject, proposals in zip(changed, move.propose(tools, changed), strict=True):
                subject.hypothesis.proposals[move.name] = _with_order(subject, proposals)


def _with_order(subject: Subject, proposals: list[Proposal]) -> list[Proposal]:
    """Add to the fluency of changes what they do to the order of tokens."""
    own, *others = subject.search.order_fluency([subject.ids, *(ids for ids, _ in proposals)])
    return [Proposal(ids, fluency + other - own) for (ids, fluency), other in zip(proposals, others, strict=True)]


def ask_what_is_missing(tools: Tools, subjects: list[Subject]) -> None:
    """Let the readout read the part of the vector that the hypotheses do not explain."""
    for subject in subjects:
        target, vector = tools.targets[subject.row], subject.hypothesis.vector
        rest = torch.from_numpy(target - (target @ vector) * vector)
        subject.missing = tools.filler.read_words(subject.row, rest)


def judge(tools: Tools, subjects: list[Subject]) -> None:
    """Ask the denoiser how probable each token is given most of the others: confidences and fluency."""
    questions = []
    for subject in subjects:
        for offset in range(min(_STRIDE, len(subject.ids))):
            canvas = list(subject.ids)
            canvas[offset::_STRIDE] = [tools.filler.mask] * len(canvas[offset::_STRIDE])
            questions.append(Question(subject.row, tuple(canvas)))
        subject.search.passes += min(_STRIDE, len(subject.ids))
    answers = tools.filler.log_probabilities(questions)
    for subject in subjects:
        subject.tokens = tools.filler.shortlists[subject.row]
        subject.scores = _weave(answers, len(subject.ids))
        subject.hypothesis.confidence = subject.own.exp().tolist()
        subject.hypothesis.fluency = float(subject.own.sum() + subject.search.order_fluency([subject.ids])[0])


def _weave(answers: list[Tensor], length: int) -> Tensor:
    """Take the answers about one text off the list: the scores (T, C) of all its positions."""
    parts = [answers.pop(0) for _ in range(min(_STRIDE, length))]
    scores = torch.empty((length, parts[0].shape[1]))
    for offset, part in enumerate(parts):
        scores[offset::_STRIDE] = part
    return scores


def look_into_gaps(tools: Tools, subjects: list[Subject]) -> None:
    """Ask the denoiser what could stand between the tokens: several gaps far apart are opened at once."""
    questions: list[Question] = []
    asked: list[tuple[Subject, range]] = []
    for subject in subjects:
        ids = subject.ids
        gaps, room = len(ids) + 1, tools.longest - len(ids)
        subject.gap_scores = torch.full((gaps, len(subject.tokens)), -torch.inf)
        if room < 1:
            continue
        stride = min(gaps, max(_STRIDE, -(-gaps // room)))
        offsets = subject.search.random.permutation(stride)[:_STRIDE].tolist()
        for opened in (range(offset, gaps, stride) for offset in offsets):
            canvas = list(ids)
            for gap in reversed(opened):
                canvas.insert(gap, tools.filler.mask)
            questions.append(Question(subject.row, tuple(canvas)))
            asked.append((subject, opened))
        subject.search.passes += len(offsets)
    for (subject, opened), scores in zip(asked, tools.filler.log_probabilities(questions), strict=True):
        subject.gap_scores[list(opened)] = scores


def substitute(tools: Tools, subjects: list[Subject]) -> list[list[Proposal]]:
    """Exchange single tokens for those that the denoiser finds likelier and the readout misses more."""
    proposals = []
    for subject in subjects:
        worth = subject.scores + _MISSING_WEIGHT * subject.missing - subject.worth[:, None]
        best = worth.topk(min(_ALTERNATIVES, worth.shape[1]))
        tokens, fluency = subject.tokens[best.indices], subject.scores.gather(1, best.indices) - subject.own[:, None]
        proposals.append(substitutions(subject.ids, tokens.numpy(), best.values.numpy(), fluency.numpy()))
    return proposals


def follow_gradient(tools: Tools, subjects: list[Subject]) -> list[list[Proposal]]:
    """Exchange single tokens for those that the encoder's gradient says bring the text nearer."""
    targets = tools.targets[[subject.row for subject in subjects]]
    estimates = tools.oracle.substitutions([subject.ids for subject in subjects], targets, _ALTERNATIVES)
    proposals: list[list[Proposal]] = []
    for subject, estimate in zip(subjects, estimates, strict=True):
        if estimate is None:
            proposals.append([])
            continue
        subject.search.texts_embedded += 1
        tokens, gains = estimate
        likelihood = subject.pick(subject.scores, tokens)
        worth = gains / _LIKELIHOOD_WEIGHT + likelihood.numpy()
        proposals.append(substitutions(subject.ids, tokens, worth, (likelihood - subject.own[:, None]).numpy()))
    return proposals


def rewrite_spans(tools: Tools, subjects: list[Subject]) -> list[list[Proposal]]:
    """Mask a few spans, mostly where the denoiser is unsure, and let it fill them again, also longer or shorter."""
    questions = []
    for subject in subjects:
        ids, random = subject.ids, subject.search.random
        doubt = 1.0 - np.asarray(subject.hypothesis.confidence) + 0.05
        for _ in range(_SPANS):
            width = int(random.integers(2, _LONGEST_SPAN + 1))
            centre = int(random.choice(len(ids), p=doubt / doubt.sum()))
            start = max(0, centre - int(random.integers(0, width)))
            end = min(len(ids), start + width)
            room = end - start + (int(random.integers(-1, 2)) if tools.resize else 0)
            if room < 1 or len(ids) - (end - start) + room > tools.longest:
                room = end - start
            questions.append(Question(subject.row, (*ids[:start], *[tools.filler.mask] * room, *ids[end:])))
            subject.search.passes += 2
    filled = [Proposal(ids, 0.0) for ids in tools.filler.fill(questions)]
    return [filled[start : start + _SPANS] for start in range(0, len(filled), _SPANS)]


def insert(tools: Tools, subjects: list[Subject]) -> list[list[Proposal]]:
    """Put a token into a gap: one that the denoiser finds likely there and the readout misses."""
    proposals = []
    for subject in subjects:
        worth = subject.gap_scores + _MISSING_WEIGHT * subject.missing
        best = worth.topk(min(_ALTERNATIVES, worth.shape[1]))
        tokens, fluency = subject.tokens[best.indices], subject.gap_scores.gather(1, best.indices)
        proposals.append(insertions(subject.ids, tokens.numpy(), best.values.numpy(), fluency.numpy()))
    return proposals


def add_missing_words(tools: Tools, subjects: list[Subject]) -> list[list[Proposal]]:
    """Take the words that the readout misses most; put each where the denoiser likes it best, or dislikes another."""
    proposals = []
    for subject in subjects:
        need = tools.filler.priors[subject.row] + _MISSING_WEIGHT * subject.missing
        words = need.topk(min(_WORDS, len(need))).indices
        ranked = _put(subject, words, need, subject.scores - subject.worth[:, None], replace=True)
        if tools.resize:
            ranked += _put(subject, words, need, subject.gap_scores, replace=False)
        ranked.sort(key=lambda pair: pair[0])
        proposals.append([proposal for _, proposal in ranked if proposal.ids != subject.ids])
    return proposals


def _put(
    subject: Subject, words: Tensor, need: Tensor, scores: Tensor, *, replace: bool
) -> list[tuple[float, Proposal]]:
    """Put words, given by column, at the positions or gaps of the best ``scores`` (n, C); say what each is worth."""
    ids, tokens = subject.ids, subject.tokens[words].tolist()
    best = scores[:, words].topk(min(_PLACES, len(scores)), dim=0)
    proposals = []
    for rank, (positions, values) in enumerate(zip(best.indices.tolist(), best.values.tolist(), strict=True)):
        for word, token, position, value in zip(words.tolist(), tokens, positions, values, strict=True):
            if value > -np.inf:
                fluency = float(subject.scores[position, word] - subject.own[position]) if replace else value
                text = (*ids[:position], token, *ids[position + replace :])
                worth = float(need[word]) - _NEXT_PLACE * (rank + replace / 2)
                proposals.append((worth, Proposal(text, fluency)))
    return proposals


def delete(tools: Tools, subjects: list[Subject]) -> list[list[Proposal]]:
    """Leave out a token or a few in a row, those of least worth first."""
    return [deletions(subject.ids, subject.worth.numpy(), subject.own.numpy()) for subject in subjects]


def reorder(tools: Tools, subjects: list[Subject]) -> list[list[Proposal]]:
    """Exchange two phrases."""
    drawn = [draw_exchanges(len(subject.ids), _REORDERINGS, subject.search.random) for subject in subjects]
    texts = [
        dict.fromkeys(exchange(subject.ids, cuts) for cuts in exchanges)
        for subject, exchanges in zip(subjects, drawn, strict=True)
    ]
    return [
        [Proposal(ids) for ids in changed if ids != subject.ids]
        for subject, changed in zip(subjects, texts, strict=True)
    ]


def rearrange(tools: Tools, subjects: list[Subject]) -> list[list[Proposal]]:
    """Exchange phrases several times in a row, led by drafts of the vectors."""

    def change(subject: Subject, ids: Ids, count: int) -> list[Ids]:
        return [exchange(ids, cuts) for cuts in draw_exchanges(len(ids), count, subject.search.random)]

    return [subject.search.look_ahead(subject.hypothesis, partial(change, subject)) for subject in subjects]


MOVES = (
    Move("gradient", (1.0, 8.0), follow_gradient, possible=lambda tools: tools.gradient, least_chance=0.05),
    Move("substitute", (1.0, 8.0), substitute),
    Move("missing", (1.0, 8.0), add_missing_words, possible=lambda tools: tools.filler.has_readout),
    Move("span", (1.0, 8.0), rewrite_spans),
    Move(REORDER, (1.0, 8.0), reorder, random=True),
    Move("rearrange", (1.0, 8.0), rearrange, possible=lambda tools: tools.oracle.draft is not None, random=True),
    Move("insert", (1.0, 8.0), insert, possible=lambda tools: tools.resize),
    Move("delete", (1.0, 8.0), delete, possible=lambda tools: tools.resize),
)
PRIORS = {move.name: move.prior for move in MOVES}


def substitutions(ids: Ids, tokens: np.ndarray, worth: np.ndarray, fluency: np.ndarray) -> list[Proposal]:
    """Return the texts in which one token is another one of ``tokens`` (T, n), those of most ``worth`` (T, n) last."""
    return [
        Proposal((*ids[:position], int(tokens[position, rank]), *ids[position + 1 :]), float(fluency[position, rank]))
        for position, rank in _ascending(worth)
        if tokens[position, rank] != ids[position]
    ]


def insertions(ids: Ids, tokens: np.ndarray, worth: np.ndarray, fluency: np.ndarray) -> list[Proposal]:
    """Return the texts with one of ``tokens`` (T + 1, n) in a gap, those of most ``worth`` (T + 1, n) last."""
    return [
        Proposal((*ids[:gap], int(tokens[gap, rank]), *ids[gap:]), float(fluency[gap, rank]))
        for gap, rank in _ascending(worth)
    ]


def _ascending(worth: np.ndarray) -> list[tuple[int, int]]:
    """Return rows and ranks of ``worth`` (T, n), whose rows descend: the best last, second choices valued lower."""
    worth = worth - _NEXT_TOKEN * np.arange(worth.shape[1])
    rows, ranks = np.unravel_index(np.argsort(worth, axis=None, kind="stable"), worth.shape)
    pairs = zip(rows.tolist(), ranks.tolist(), strict=True)
    return [(row, rank) for row, rank in pairs if np.isfinite(worth[row, rank])]


def deletions(ids: Ids, worth: np.ndarray, likelihood: np.ndarray) -> list[Proposal]:
    """Return the texts that lack a token or a few in a row, those that lack what is worth least last."""
    spans = [
        (float(np.mean(worth[start : start + width])), start, start + width)
        for width in range(1, min(_LONGEST_DELETION, len(ids) - 1) + 1)
        for start in range(len(ids) - width + 1)
    ]
    return [
        Proposal(ids[:start] + ids[end:], -float(likelihood[start:end].sum()))
        for _, start, end in sorted(spans, reverse=True)
    ]


Cuts = tuple[int, int, int, int]
"""Where two phrases begin and end: the tokens [a, b) and the tokens [c, d)."""


def draw_exchanges(length: int, count: int, random: np.random.Generator) -> list[Cuts]:
    """Draw different phrases to exchange: half of them move a short one past others, the rest are of any length."""
    cuts: dict[Cuts, None] = {}
    for _ in range(count if length > 1 else 0):
        if random.random() < 0.5:
            width = min(int(random.geometric(0.5)), length // 2)
            start, target = random.choice(length - width + 1, 2, replace=False).tolist()
            middle = start if target < start else start + width
            cuts[min(start, target), middle, middle, max(start, target) + width] = None
        else:
            low, middle, end, high = np.sort(random.integers(0, length + 1, 4)).tolist()
            end = middle if random.random() < 0.5 else end
            if low < middle and end < high:
                cuts[low, middle, end, high] = None
    return list(cuts)


def exchange(ids: Ids, cuts: Cuts) -> Ids:
    """Exchange two phrases: A X B becomes B X A."""
    a, b, c, d = cuts
    return (*ids[:a], *ids[c:d], *ids[b:c], *ids[a:b], *ids[d:])
