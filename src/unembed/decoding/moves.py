"""What could be changed about a hypothesis: proposals of the denoiser, of the encoder's gradient, and of chance.

Knows no cosines: it proposes, the search disposes.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import chain, combinations

import numpy as np
import torch
from torch import Tensor

from unembed.decoding.oracle import Ids, Oracle
from unembed.decoding.search import Hypothesis, Search
from unembed.engine import Engine
from unembed.model import NoiseSchedule

# Every fifth position is asked for at once: each is judged with most of the text in view, for a fifth of the passes.
_STRIDE = 5
_TOKENS = 16  # alternatives per position
_INSERTED = 3  # tokens per gap
_LONGEST_DELETION = 3  # tokens: a word may have as many pieces
_SPANS = 3
_LONGEST_SPAN = 4
_EXCHANGES = 200
# So many tokens longer may the shorter span of an exchange be, and still come before another one.
_LONGER_SPANS = 2.0
_CANVASES_AT_ONCE = 64
_LOG_FLOOR = -15.0
# What a nat of the denoiser's log-probability is worth beside the gradient's estimate of the gain in cosine.
_NAT = 0.01


@dataclass(frozen=True)
class _Question:
    """A canvas with masks, put to the denoiser."""

    row: int
    """Of the condition."""
    canvas: tuple[int, ...]


class Proposer:
    """Proposes changes to hypotheses, for many vectors together."""

    def __init__(
        self,
        engine: Engine,
        noise: NoiseSchedule,
        targets: Tensor,
        oracle: Oracle,
        *,
        gradient: bool,
        resize: bool,
    ) -> None:
        self.engine, self.noise, self.oracle = engine, noise, oracle
        self.gradient, self.resize = gradient, resize
        self._condition = engine.condition(targets)
        self._targets = targets.float().cpu().numpy()
        self._device = targets.device
        self._mask = engine.vocabulary.mask
        self._longest = engine.config.canvas_length

    def expand(self, searches: Mapping[int, Search], *, propose: bool = True) -> None:
        """Give every hypothesis in the beams its confidences and its proposals, unless it has them.

        Args:
            searches: by the vector's row.
            propose: False for the confidences only.
        """
        pending = [
            (row, search, parent)
            for row, search in searches.items()
            for parent in search.beam
            if parent.confidence is None and (propose or parent is search.best)
        ]
        if not pending:
            return
        self._judge(pending)
        if not propose:
            return
        self._respan(pending)
        for _, search, parent in pending:
            parent.proposals["reorder"] = _reorderings(parent.ids, search.random)
        if not self.resize:
            return
        self._insert(pending)
        for _, _, parent in pending:
            parent.proposals["delete"] = _deletions(parent)

    def _judge(self, pending: list[tuple[int, Search, Hypothesis]]) -> None:
        """Ask for each token how probable it is given most of the others, and what could stand in its place."""
        questions = []
        for row, search, parent in pending:
            for offset in range(min(_STRIDE, len(parent.ids))):
                canvas = [self._mask if place % _STRIDE == offset else token for place, token in enumerate(parent.ids)]
                questions.append(_Question(row, tuple(canvas)))
            search.passes += min(_STRIDE, len(parent.ids))
        answers = iter(self._ask(questions))
        gains = self._gains(pending)
        for (_, _, parent), gain in zip(pending, gains, strict=True):
            length = len(parent.ids)
            scores = torch.empty((length, 0))
            for offset in range(min(_STRIDE, length)):
                logits = next(answers)
                scores = scores if scores.shape[1] else torch.empty((length, logits.shape[1]))
                scores[offset::_STRIDE] = logits
            own = scores.gather(1, torch.tensor(parent.ids)[:, None])[:, 0].clamp(min=_LOG_FLOOR)
            parent.confidence = own.exp().tolist()
            parent.fluency = float(own.mean())
            best = scores.topk(_TOKENS)
            worth = best.values - own[:, None]
            parent.proposals["substitute"] = _substitutions(parent.ids, best.indices.numpy(), worth.numpy())
            if gain is not None:
                tokens, gained = gain
                likely = scores.gather(1, torch.from_numpy(tokens)).clamp(min=_LOG_FLOOR).numpy()
                parent.proposals["gradient"] = _substitutions(parent.ids, tokens, gained + _NAT * likely)

    def _gains(self, pending: list[tuple[int, Search, Hypothesis]]) -> list[tuple[np.ndarray, np.ndarray] | None]:
        if not self.gradient:
            return [None] * len(pending)
        for _, search, _ in pending:
            search.encoder_calls += 1
        targets = self._targets[[row for row, _, _ in pending]]
        return self.oracle.substitutions([parent.ids for _, _, parent in pending], targets, _TOKENS)

    def _insert(self, pending: list[tuple[int, Search, Hypothesis]]) -> None:
        """Open gaps, several far apart at once as in ``_judge``, and let the denoiser fill each."""
        questions: list[_Question] = []
        owners: list[tuple[Hypothesis, range]] = []
        for row, search, parent in pending:
            places, room = len(parent.ids) + 1, self._longest - len(parent.ids)
            if room < 1:
                continue
            stride = min(places, max(_STRIDE, -(-places // room)))
            offsets = search.random.permutation(stride)[:_STRIDE].tolist()
            for gaps in (range(offset, places, stride) for offset in offsets):
                pieces = ((self._mask, *parent.ids[gap : gap + stride]) for gap in gaps)
                questions.append(_Question(row, (*parent.ids[: gaps.start], *chain.from_iterable(pieces))))
                owners.append((parent, gaps))
            search.passes += len(offsets)
        ranked: dict[int, list[tuple[float, Ids]]] = {}
        for (parent, gaps), scores in zip(owners, self._ask(questions), strict=True):
            best = scores.topk(_INSERTED)
            for gap, tokens, values in zip(gaps, best.indices.tolist(), best.values.tolist(), strict=True):
                ranked.setdefault(id(parent), []).extend(
                    (value, (*parent.ids[:gap], token, *parent.ids[gap:]))
                    for token, value in zip(tokens, values, strict=True)
                )
        for _, _, parent in pending:
            parent.proposals["insert"] = [ids for _, ids in sorted(ranked.get(id(parent), []))]

    def _respan(self, pending: list[tuple[int, Search, Hypothesis]]) -> None:
        """Mask a few spans, mostly where the denoiser doubts, and let it write them anew, also longer or shorter."""
        questions, owners = [], []
        for row, search, parent in pending:
            doubt = 1.0 - np.asarray(parent.confidence) + 0.05
            for _ in range(_SPANS):
                width = int(search.random.integers(2, _LONGEST_SPAN + 1))
                centre = int(search.random.choice(len(parent.ids), p=doubt / doubt.sum()))
                start = max(0, centre - int(search.random.integers(0, width)))
                end = min(len(parent.ids), start + width)
                room = end - start + (int(search.random.integers(-1, 2)) if self.resize else 0)
                if room < 1 or len(parent.ids) - (end - start) + room > self._longest:
                    room = end - start
                canvas = (*parent.ids[:start], *[self._mask] * room, *parent.ids[end:])
                questions.append(_Question(row, canvas))
                owners.append(parent)
                search.passes += 2
            parent.proposals["span"] = []
        for parent, ids in zip(owners, self._fill(questions), strict=True):
            parent.proposals["span"].append(ids)

    def _fill(self, questions: list[_Question]) -> list[Ids]:
        """Fill all masks in two passes: the surer half first, then the rest in view of it."""
        for last in (False, True):
            answers = self._ask(questions)
            filled = []
            for question, scores in zip(questions, answers, strict=True):
                masked = [place for place, token in enumerate(question.canvas) if token == self._mask]
                best = scores.max(1)
                canvas = list(question.canvas)
                surest = best.values.argsort(descending=True)[: None if last else -(-len(masked) // 2)].tolist()
                for place in surest:
                    canvas[masked[place]] = int(best.indices[place])
                filled.append(_Question(question.row, tuple(canvas)))
            questions = filled
        return [question.canvas for question in questions]

    def _ask(self, questions: list[_Question]) -> list[Tensor]:
        """Return the log-probabilities at the masks of each canvas, (masks, outputs) on the CPU."""
        answers: dict[int, Tensor] = {}
        by_length: dict[int, list[int]] = {}
        for number, question in enumerate(questions):
            by_length.setdefault(len(question.canvas), []).append(number)
        for numbers in by_length.values():
            for start in range(0, len(numbers), _CANVASES_AT_ONCE):
                part = numbers[start : start + _CANVASES_AT_ONCE]
                canvas = torch.tensor([questions[number].canvas for number in part], device=self._device)
                condition = self._condition.rows(torch.tensor([questions[number].row for number in part]))
                masked = canvas == self._mask
                times = self.noise.time_of(masked.float().mean(1))
                hidden = self.engine.hidden(canvas, condition, times, masked)
                logits = self.engine.logits(hidden, masked, canvas, condition)
                scores = logits.float().log_softmax(-1).cpu()
                answers |= dict(zip(part, torch.split(scores, masked.sum(1).tolist()), strict=True))
        return [answers[number] for number in range(len(questions))]


def _substitutions(ids: Ids, tokens: np.ndarray, worth: np.ndarray) -> list[Ids]:
    """Return the texts in which one token is another, the most worthwhile last."""
    places, columns = np.unravel_index(np.argsort(worth, axis=None, kind="stable"), worth.shape)
    found = []
    for place, column in zip(places.tolist(), columns.tolist(), strict=True):
        token = int(tokens[place, column])
        if token != ids[place] and np.isfinite(worth[place, column]):
            found.append((*ids[:place], token, *ids[place + 1 :]))
    return found


def _deletions(parent: Hypothesis) -> list[Ids]:
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


def _reorderings(ids: Ids, random: np.random.Generator) -> list[Ids]:
    """Exchange two neighbouring spans: tokens, a token and what it moves past, phrases. Short spans mostly last."""
    cuts = np.array(list(combinations(range(len(ids) + 1), 3)), dtype=int).reshape(-1, 3)
    shorter = np.diff(cuts).min(1, initial=len(ids))
    order = np.argsort(shorter + _LONGER_SPANS * random.random(len(cuts)))[:_EXCHANGES]
    found = [
        (*ids[:start], *ids[middle:end], *ids[start:middle], *ids[end:]) for start, middle, end in cuts[order].tolist()
    ]
    return found[::-1]
