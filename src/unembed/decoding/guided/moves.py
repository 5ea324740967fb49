"""What can be changed about a hypothesis: by the denoiser, by the encoder's gradient, and by chance.

A move only proposes texts; which of them are embedded and kept is up to the search.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from itertools import chain

import numpy as np
import torch
from torch import Tensor

from unembed.decoding.guided.filler import MaskFiller, Question
from unembed.decoding.guided.hypothesis import Hypothesis, Ids
from unembed.decoding.guided.oracle import Oracle
from unembed.decoding.guided.search import Search

# Every fifth position is masked at once: each is judged with most of the text in view, for a fifth of the passes.
_STRIDE = 5
_ALTERNATIVES = 16  # per position
_INSERTED = 3  # tokens per gap
_LONGEST_DELETION = 3  # tokens: a word may have as many pieces
_SPANS = 3
_LONGEST_SPAN = 4
_REORDERINGS = 200  # whatever the length
# Short phrases are moved first, mostly: a phrase may come before another one that is up to this many tokens shorter.
_LENGTH_TOLERANCE = 2.0
_MERGED_AT_MOST = 4
_LOG_FLOOR = -15.0
# Weight of the denoiser's log-probability relative to the estimated gain in cosine.
_LIKELIHOOD_WEIGHT = 0.01


@dataclass
class Subject:
    """A hypothesis that is about to be changed, and the search that it belongs to."""

    row: int
    search: Search
    hypothesis: Hypothesis
    scores: Tensor = field(default_factory=lambda: torch.empty(0))
    """(T, outputs) log-probabilities at each position, once the hypothesis was judged."""

    @property
    def ids(self) -> Ids:
        """Its tokens."""
        return self.hypothesis.ids


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
    propose: Callable[[Tools, list[Subject]], list[list[Ids]]]
    """Returns changed texts of each hypothesis, the most promising last."""
    possible: Callable[[Tools], bool] = lambda tools: True
    every_round: bool = False
    """Whether a hypothesis that stays in the beam gets new proposals each round."""


def expand(tools: Tools, searches: Mapping[int, Search]) -> None:
    """Give the hypotheses in the beams, by the row of their vector, the proposals that they do not have yet."""
    subjects = [Subject(row, search, parent) for row, search in searches.items() for parent in search.beam]
    new = [subject for subject in subjects if subject.hypothesis.confidence is None]
    judge(tools, new)
    for move in MOVES:
        changed = subjects if move.every_round else new
        if changed and move.possible(tools):
            for subject, proposals in zip(changed, move.propose(tools, changed), strict=True):
                subject.hypothesis.proposals[move.name] = proposals


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
        subject.scores = torch.empty((length, answers[0].shape[1]))
        for offset in range(min(_STRIDE, length)):
            subject.scores[offset::_STRIDE] = answers.pop(0)
        own = _own_scores(subject)
        subject.hypothesis.confidence = own.exp().tolist()
        subject.hypothesis.fluency = float(own.mean())


def _own_scores(subject: Subject) -> Tensor:
    """Return the log-probability of each token of a hypothesis that was judged."""
    return subject.scores.gather(1, torch.tensor(subject.ids)[:, None])[:, 0].clamp(min=_LOG_FLOOR)


def substitute(tools: Tools, subjects: list[Subject]) -> list[list[Ids]]:
    """Exchange single tokens for those that the denoiser finds likelier."""
    proposals = []
    for subject in subjects:
        likeliest = subject.scores.topk(_ALTERNATIVES)
        worth = likeliest.values - _own_scores(subject)[:, None]
        proposals.append(substitutions(subject.ids, likeliest.indices.numpy(), worth.numpy()))
    return proposals


def follow_gradient(tools: Tools, subjects: list[Subject]) -> list[list[Ids]]:
    """Exchange single tokens for those that the encoder's gradient says bring the text nearer."""
    targets = tools.targets[[subject.row for subject in subjects]]
    estimates = tools.oracle.substitutions([subject.ids for subject in subjects], targets, _ALTERNATIVES)
    proposals: list[list[Ids]] = []
    for subject, estimate in zip(subjects, estimates, strict=True):
        if estimate is None:
            proposals.append([])
            continue
        subject.search.encoder_calls += 1
        tokens, gains = estimate
        likelihood = subject.scores.gather(1, torch.from_numpy(tokens)).clamp(min=_LOG_FLOOR).numpy()
        proposals.append(substitutions(subject.ids, tokens, gains + _LIKELIHOOD_WEIGHT * likelihood))
    return proposals


def rewrite_spans(tools: Tools, subjects: list[Subject]) -> list[list[Ids]]:
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
    filled = tools.filler.fill(questions)
    return [filled[start : start + _SPANS] for start in range(0, len(filled), _SPANS)]


def insert(tools: Tools, subjects: list[Subject]) -> list[list[Ids]]:
    """Open gaps, several far apart at once as in ``judge``, and let the denoiser fill each."""
    questions: list[Question] = []
    asked: list[tuple[int, range]] = []
    for number, subject in enumerate(subjects):
        ids = subject.ids
        gaps, room = len(ids) + 1, tools.longest - len(ids)
        if room < 1:
            continue
        stride = min(gaps, max(_STRIDE, -(-gaps // room)))
        offsets = subject.search.random.permutation(stride)[:_STRIDE].tolist()
        for opened in (range(offset, gaps, stride) for offset in offsets):
            pieces = ((tools.filler.mask, *ids[gap : gap + stride]) for gap in opened)
            questions.append(Question(subject.row, (*ids[: opened.start], *chain.from_iterable(pieces))))
            asked.append((number, opened))
        subject.search.passes += len(offsets)
    ranked: list[list[tuple[float, Ids]]] = [[] for _ in subjects]
    for (number, opened), scores in zip(asked, tools.filler.log_probabilities(questions), strict=True):
        ids, likeliest = subjects[number].ids, scores.topk(_INSERTED)
        for gap, tokens, values in zip(opened, likeliest.indices.tolist(), likeliest.values.tolist(), strict=True):
            ranked[number] += [
                (value, (*ids[:gap], token, *ids[gap:])) for token, value in zip(tokens, values, strict=True)
            ]
    return [[ids for _, ids in sorted(proposals)] for proposals in ranked]


def delete(tools: Tools, subjects: list[Subject]) -> list[list[Ids]]:
    """Leave out a token or a few in a row."""
    return [deletions(subject.hypothesis) for subject in subjects]


def reorder(tools: Tools, subjects: list[Subject]) -> list[list[Ids]]:
    """Move tokens and phrases to other positions."""
    return [reorderings(subject.ids, subject.search.random) for subject in subjects]


def merge(tools: Tools, subjects: list[Subject]) -> list[list[Ids]]:
    """Try changes together that each helped alone in the last round."""
    return [merged(subject.hypothesis) for subject in subjects]


MOVES = (
    Move("gradient", (2.0, 4.0), follow_gradient, possible=lambda tools: tools.gradient),
    Move("substitute", (2.0, 4.0), substitute),
    Move("span", (1.0, 4.0), rewrite_spans),
    Move("reorder", (1.0, 4.0), reorder),
    Move("insert", (1.0, 4.0), insert, possible=lambda tools: tools.resize),
    Move("delete", (1.0, 4.0), delete, possible=lambda tools: tools.resize),
    Move("merge", (3.0, 4.0), merge, every_round=True),
)
PRIORS = {move.name: move.prior for move in MOVES}


def substitutions(ids: Ids, tokens: np.ndarray, worth: np.ndarray) -> list[Ids]:
    """Return the texts in which one token is another one of ``tokens`` (T, n), those of most ``worth`` (T, n) last."""
    positions, columns = np.unravel_index(np.argsort(worth, axis=None, kind="stable"), worth.shape)
    changed = []
    for position, column in zip(positions.tolist(), columns.tolist(), strict=True):
        token = int(tokens[position, column])
        if token != ids[position] and np.isfinite(worth[position, column]):
            changed.append((*ids[:position], token, *ids[position + 1 :]))
    return changed


def deletions(parent: Hypothesis) -> list[Ids]:
    """Return the texts that lack a token or a few in a row, those that lack the most doubtful ones last."""
    if parent.confidence is None:
        return []
    ids = parent.ids
    spans = [
        (float(np.mean(parent.confidence[start : start + width])), start, start + width)
        for width in range(1, min(_LONGEST_DELETION, len(ids) - 1) + 1)
        for start in range(len(ids) - width + 1)
    ]
    return [ids[:start] + ids[end:] for _, start, end in sorted(spans, reverse=True)]


def reorderings(ids: Ids, random: np.random.Generator) -> list[Ids]:
    """Return texts in which a phrase stands elsewhere, those that move short ones mostly last.

    They are drawn: a long text has far too many to list them all. Half of the draws move one token, a quarter two.
    """
    length, draws = len(ids), 2 * _REORDERINGS
    if length < 2:
        return []
    widths = np.minimum(random.geometric(0.5, draws), length // 2)
    starts = random.integers(0, length - widths + 1)
    targets = random.integers(0, length - widths)
    targets += targets >= starts  # anywhere but where the phrase is
    # To move a phrase is to exchange it with what it moves past: [low, middle) with [middle, high).
    low = np.minimum(starts, targets)
    middle = np.where(targets < starts, starts, starts + widths)
    high = np.maximum(starts, targets) + widths
    order = np.argsort(widths + _LENGTH_TOLERANCE * random.random(draws))
    cuts = dict.fromkeys(zip(low[order].tolist(), middle[order].tolist(), high[order].tolist(), strict=True))
    moved = [
        (*ids[:start], *ids[centre:end], *ids[start:centre], *ids[end:])
        for start, centre, end in list(cuts)[:_REORDERINGS]
    ]
    return moved[::-1]


def merged(parent: Hypothesis) -> list[Ids]:
    """Join the substitutions that each improved on a hypothesis, the best ones last."""
    changes: list[dict[int, int]] = []
    for child in sorted(parent.improvements, key=lambda child: -child.cosine):
        if len(child.ids) != len(parent.ids):
            continue
        pairs = enumerate(zip(parent.ids, child.ids, strict=True))
        change = {position: new for position, (old, new) in pairs if old != new}
        if not any(change.keys() & other.keys() for other in changes):
            changes.append(change)
    together = [changes[:count] for count in range(2, min(len(changes), _MERGED_AT_MOST) + 1)]
    if len(changes) > 2:
        together.insert(0, [changes[0], changes[2]])
    texts = []
    for group in together:
        ids = dict(enumerate(parent.ids))
        for change in group:
            ids |= change
        texts.append(tuple(ids.values()))
    return texts
