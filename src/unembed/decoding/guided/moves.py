"""What can be changed about a hypothesis: by the denoiser, by the encoder's gradient, and by chance.

A move only proposes texts; which of them are embedded and kept is up to the search.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
import torch
from torch import Tensor

from unembed.decoding.guided.filler import MaskFiller, Question
from unembed.decoding.guided.hypothesis import Hypothesis, Ids, Proposal
from unembed.decoding.guided.oracle import Oracle
from unembed.decoding.guided.search import Search

# Every fifth position is masked at once: each is judged with most of the text in view, for a fifth of the passes.
_STRIDE = 5
_ALTERNATIVES = 16  # per position or gap
_LONGEST_DELETION = 3  # tokens: a word may have as many pieces
_SPANS = 3
_LONGEST_SPAN = 4
_REORDERINGS = 48  # whatever the length
_LOG_FLOOR = -15.0
# Weight of the denoiser's log-probability relative to the estimated gain in cosine.
_LIKELIHOOD_WEIGHT = 0.01
import os
_WANTED = float(os.environ.get("WANTED", "0.5"))
_CROWD = float(os.environ.get("CROWD", "0.3"))


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
    wanted: Tensor = field(default_factory=lambda: torch.empty(0))
    """(C,) how much more the vector asks for each than the hypothesis gives."""

    @property
    def ids(self) -> Ids:
        """Its tokens."""
        return self.hypothesis.ids

    def of(self, tokens: Sequence[int], scores: Tensor, absent: float) -> Tensor:
        """Return from scores (n, C) that of each of n tokens; ``absent`` where it is not scored."""
        ids = torch.tensor(tokens)
        columns = torch.searchsorted(self.tokens, ids).clamp(max=len(self.tokens) - 1)
        mine = scores.gather(1, columns[:, None])[:, 0].clamp(min=_LOG_FLOOR)
        return torch.where(self.tokens[columns] == ids, mine, torch.full_like(mine, absent))

    def own(self, scores: Tensor, absent: float) -> Tensor:
        """Return from scores (T, C) that of the token at each position; ``absent`` where it is not scored."""
        return self.of(self.ids, scores, absent)


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


def expand(tools: Tools, searches: Mapping[int, Search]) -> None:
    """Give the hypotheses in the beams, by the row of their vector, proposals: each move once, or in each round."""
    subjects = [Subject(row, search, parent) for row, search in searches.items() for parent in search.beam]
    if not subjects:
        return
    new = [subject for subject in subjects if not subject.hypothesis.proposals]
    judge(tools, subjects)
    if tools.resize:
        look_into_gaps(tools, new)
    ask_for_words(tools, new)
    for move in MOVES:
        changed = subjects if move.random else new
        if changed and move.possible(tools):
            for subject, proposals in zip(changed, move.propose(tools, changed), strict=True):
                subject.hypothesis.proposals[move.name] = proposals


def ask_for_words(tools: Tools, subjects: list[Subject]) -> None:
    """Ask the readout which words the hypotheses lack: it reads the part of the vector that they do not explain."""
    for subject in subjects:
        target, vector = tools.targets[subject.row], subject.hypothesis.vector
        missing = torch.from_numpy(target - (target @ vector) * vector)
        subject.wanted = tools.filler.wanted(subject.row, missing)


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
        length = len(subject.ids)
        subject.tokens = tools.filler.shortlists[subject.row]
        subject.scores = torch.empty((length, len(subject.tokens)))
        for offset in range(min(_STRIDE, length)):
            subject.scores[offset::_STRIDE] = answers.pop(0)
        own = subject.own(subject.scores, _LOG_FLOOR)
        subject.hypothesis.confidence = own.exp().tolist()
        subject.hypothesis.fluency = float(own.sum())


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
    """Exchange single tokens for those that the denoiser finds likelier, and that the vector asks for."""
    proposals = []
    for subject in subjects:
        wanted = subject.wanted.expand_as(subject.scores)
        worth = subject.scores + _WANTED * wanted
        worth = worth - (subject.own(subject.scores, _LOG_FLOOR) + _WANTED * subject.own(wanted, 0.0))[:, None]
        best = worth.topk(min(_ALTERNATIVES, worth.shape[1]))
        gains = subject.scores.gather(1, best.indices) - subject.own(subject.scores, _LOG_FLOOR)[:, None]
        proposals.append(
            substitutions(subject.ids, subject.tokens[best.indices].numpy(), best.values.numpy(), gains.numpy())
        )
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
        subject.search.encoder_calls += 1
        tokens, gains = estimate
        columns = torch.searchsorted(subject.tokens, torch.from_numpy(tokens)).clamp(max=len(subject.tokens) - 1)
        known = subject.tokens[columns].numpy() == tokens
        likelihood = np.where(known, subject.scores.gather(1, columns).clamp(min=_LOG_FLOOR).numpy(), _LOG_FLOOR)
        change = likelihood - subject.own(subject.scores, _LOG_FLOOR).numpy()[:, None]
        proposals.append(substitutions(subject.ids, tokens, gains + _LIKELIHOOD_WEIGHT * likelihood, change, _CROWD/30))
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
    """Put a token into a gap: one that the denoiser finds likely there, and that the vector asks for."""
    proposals = []
    for subject in subjects:
        ids = subject.ids
        worth = subject.gap_scores + _WANTED * subject.wanted
        best = worth.topk(min(_ALTERNATIVES, worth.shape[1]))
        tokens = subject.tokens[best.indices].numpy()
        likelihood = subject.gap_scores.gather(1, best.indices).clamp(min=_LOG_FLOOR).numpy()
        proposals.append(
            [
                Proposal((*ids[:gap], int(tokens[gap, rank]), *ids[gap:]), float(likelihood[gap, rank]))
                for gap, rank in _ascending(best.values.numpy())
            ]
        )
    return proposals


_WORDS = 96
_AGAIN = float(os.environ.get("AGAIN", "2.0"))
_RES = float(os.environ.get("RES", "0.5"))


def add_wanted(tools: Tools, subjects: list[Subject]) -> list[list[Proposal]]:
    """Put the words that the vector asks for where the denoiser finds them likeliest: into gaps, or for other words."""
    proposals = []
    for subject in subjects:
        ids = subject.ids
        need = tools.filler.priors[subject.row] + _RES * subject.wanted
        words = need.topk(min(_WORDS, len(need))).indices
        own = subject.own(subject.scores, _LOG_FLOOR) + subject.own(
            (_RES * subject.wanted).expand_as(subject.scores), 0.0
        )
        instead = (subject.scores[:, words] - own[:, None]).topk(min(2, len(ids)), dim=0)
        into = subject.gap_scores[:, words].topk(min(2, len(ids) + 1), dim=0) if tools.resize else None
        ranked = []
        for column, word in enumerate(words.tolist()):
            token, value = int(subject.tokens[word]), float(need[word])
            for rank in range(len(instead.indices)):
                at = int(instead.indices[rank, column])
                change = float(subject.scores[at, word]) - float(own[at])
                ranked.append((value - _AGAIN * (rank + 0.5), Proposal((*ids[:at], token, *ids[at + 1 :]), change)))
            if into is not None:
                for rank in range(len(into.indices)):
                    at, change = int(into.indices[rank, column]), float(into.values[rank, column])
                    if np.isfinite(change):
                        ranked.append((value - _AGAIN * rank, Proposal((*ids[:at], token, *ids[at:]), change)))
        ranked.sort(key=lambda pair: pair[0])
        proposals.append([proposal for _, proposal in ranked if proposal.ids != ids])
    return proposals


def delete(tools: Tools, subjects: list[Subject]) -> list[list[Proposal]]:
    """Leave out a token or a few in a row, the doubtful and unwanted ones first."""
    proposals = []
    for subject in subjects:
        wanted = subject.own(subject.wanted.expand_as(subject.scores), 0.0)
        own = subject.own(subject.scores, _LOG_FLOOR)
        proposals.append(deletions(subject.ids, (own + _WANTED * wanted).numpy(), own.numpy()))
    return proposals


def reorder(tools: Tools, subjects: list[Subject]) -> list[list[Proposal]]:
    """Exchange two phrases; those come first whose new neighbours the denoiser finds likely."""
    drawn = [draw_exchanges(len(subject.ids), subject.search.random) for subject in subjects]
    questions, expected = [], []
    for subject, exchanges in zip(subjects, drawn, strict=True):
        for cuts in exchanges:
            ids = exchange(subject.ids, cuts)
            seams = [seam for seam in new_seams(cuts) if seam < len(ids)]
            canvas = list(ids)
            for seam in seams:
                canvas[seam] = tools.filler.mask
            questions.append(Question(subject.row, tuple(canvas)))
            expected.append((subject, [ids[seam] for seam in seams], [seam for seam in cuts if seam < len(ids)]))
    answers = tools.filler.log_probabilities(questions)
    gains = []
    for (subject, tokens, seams), scores in zip(expected, answers, strict=True):
        before = subject.own(subject.scores, _LOG_FLOOR)[sorted(set(seams))].sum()
        gains.append(float(subject.of(tokens, scores, _LOG_FLOOR).sum() - before))
    proposals = []
    for subject, exchanges in zip(subjects, drawn, strict=True):
        own, gains = gains[: len(exchanges)], gains[len(exchanges) :]
        ranked = sorted(zip(own, exchanges, strict=True))
        texts = {exchange(subject.ids, cuts): gain for gain, cuts in ranked}
        proposals.append([Proposal(ids, gain) for ids, gain in texts.items() if ids != subject.ids])
        subject.search.passes += len(exchanges)
    return proposals


Cuts = tuple[int, int, int, int]
"""Where two phrases begin and end: what is exchanged are the tokens [a, b) with the tokens [c, d)."""


def draw_exchanges(length: int, random: np.random.Generator) -> list[Cuts]:
    """Draw phrases to exchange: neighbours, or with others between them that stay."""
    cuts: dict[Cuts, None] = {}
    for _ in range(_REORDERINGS if length > 1 else 0):
        if random.random() < 0.5:  # a short phrase moves past others
            width = min(int(random.geometric(0.5)), length // 2)
            start = int(random.integers(0, length - width + 1))
            other = int(random.integers(0, length - width))
            other += other >= start
            middle = start if other < start else start + width
            cuts[min(start, other), middle, middle, max(start, other) + width] = None
        else:
            low, middle, end, high = np.sort(random.integers(0, length + 1, 4)).tolist()
            if random.random() < 0.5:
                end = middle
            if low < middle and end < high:
                cuts[low, middle, end, high] = None
    return list(cuts)


def exchange(ids: Ids, cuts: Cuts) -> Ids:
    """Exchange two phrases."""
    a, b, c, d = cuts
    return (*ids[:a], *ids[c:d], *ids[b:c], *ids[a:b], *ids[d:])


def new_seams(cuts: Cuts) -> list[int]:
    """Return the positions of the tokens that have a new left neighbour after an exchange."""
    a, b, c, d = cuts
    return sorted({a, a + d - c, a + d - b, d})


MOVES = (
    Move("gradient", (1.0, 8.0), follow_gradient, possible=lambda tools: tools.gradient),
    Move("substitute", (1.0, 8.0), substitute),
    Move("wanted", (1.0, 8.0), add_wanted),
    Move("span", (1.0, 8.0), rewrite_spans, random=True),
    Move("reorder", (1.0, 8.0), reorder, random=True),
    Move("insert", (1.0, 8.0), insert, possible=lambda tools: tools.resize),
    Move("delete", (1.0, 8.0), delete, possible=lambda tools: tools.resize),
)
PRIORS = {move.name: move.prior for move in MOVES}


def _ascending(worth: np.ndarray, crowd: float = _CROWD) -> list[tuple[int, int]]:
    """Return the positions and ranks of worth (T, n), each row in descending order; what is worth most last.

    A second choice for a position is worth less than its first.
    """
    worth = worth - crowd * np.arange(worth.shape[1])
    order = np.argsort(worth, axis=None, kind="stable")
    pairs = zip(*np.unravel_index(order, worth.shape), strict=True)
    return [(int(position), int(rank)) for position, rank in pairs if np.isfinite(worth[position, rank])]


def substitutions(
    ids: Ids, tokens: np.ndarray, worth: np.ndarray, likelihood: np.ndarray, crowd: float = _CROWD
) -> list[Proposal]:
    """Return the texts in which one token is another one of ``tokens`` (T, n), those of most ``worth`` (T, n) last."""
    return [
        Proposal(
            (*ids[:position], int(tokens[position, rank]), *ids[position + 1 :]), float(likelihood[position, rank])
        )
        for position, rank in _ascending(worth, crowd)
        if tokens[position, rank] != ids[position]
    ]


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
