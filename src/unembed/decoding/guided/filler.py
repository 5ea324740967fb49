"""Asks the denoiser about canvases with a few masks, of many vectors together. Knows no search."""

from dataclasses import dataclass

import torch
from torch import Tensor

from unembed.decoding.guided.hypothesis import Ids
from unembed.engine import Engine
from unembed.model import NoiseSchedule
from unembed.model.candidates import Candidates
from unembed.model.precision import quickest

_CANVASES_AT_ONCE = 64
# Tokens that are scored for each vector: those that its readout finds likeliest.
_SHORTLIST = 2048


@dataclass(frozen=True)
class Question:
    """A canvas with masks."""

    row: int
    """Of the vector that it belongs to."""
    canvas: Ids


class MaskFiller:
    """Says what could stand at the masks of a canvas, given its vector and its other tokens."""

    def __init__(self, engine: Engine, noise: NoiseSchedule, embeddings: Tensor) -> None:
        self.engine, self.noise = engine, noise
        self.mask = engine.vocabulary.mask
        self._embeddings, self._device = embeddings, embeddings.device
        self._condition = engine.condition(embeddings)
        offsets = self._condition.offsets
        self.has_readout = engine.config.readout.kind != "none"
        scored = int(offsets.isfinite().sum(1).min())
        size = min(_SHORTLIST, scored) if self.has_readout else scored
        self.shortlists: list[Tensor] = list(offsets.topk(size).indices.sort().values.cpu())
        """The tokens that are scored for each vector, in ascending order, on the CPU."""
        self.priors = [self.read_words(row, vector) for row, vector in enumerate(embeddings)]
        """Their log-probabilities by the readout of the vector itself."""
        none = torch.zeros(size, device=self._device)
        self._shortlisted = [
            engine.condition(embeddings[row : row + 1], candidates=Candidates(tokens.to(self._device), none))
            for row, tokens in enumerate(self.shortlists)
        ]

    def log_probabilities(self, questions: list[Question]) -> list[Tensor]:
        """Return the log-probabilities of the vector's shortlist at the masks of each canvas, (masks, C) on the CPU."""
        answers: dict[int, Tensor] = {}
        by_length: dict[int, list[int]] = {}
        for number, question in enumerate(questions):
            by_length.setdefault(len(question.canvas), []).append(number)
        for numbers in by_length.values():
            for start in range(0, len(numbers), _CANVASES_AT_ONCE):
                part = numbers[start : start + _CANVASES_AT_ONCE]
                canvas = torch.tensor([questions[number].canvas for number in part], device=self._device)
                rows = torch.tensor([questions[number].row for number in part])
                masked = canvas == self.mask
                times = self.noise.time_of(masked.float().mean(1))
                with quickest(self._device):  # the search needs no more than two digits
                    hidden = self.engine.hidden(canvas, self._condition.rows(rows), times, masked).float()
                for row in sorted(set(rows.tolist())):
                    index = (rows == row).nonzero()[:, 0]
                    condition = self._shortlisted[row].rows(torch.zeros_like(index))
                    logits = self.engine.logits(hidden[index], masked[index], canvas[index], condition)
                    scores = logits.float().log_softmax(-1).cpu()
                    own = [part[each] for each in index.tolist()]
                    answers |= dict(zip(own, torch.split(scores, masked[index].sum(1).tolist()), strict=True))
        return [answers[number] for number in range(len(questions))]

    def read_words(self, row: int, vector: Tensor) -> Tensor:
        """Return the log-probability of each token of a row's shortlist, (C,), as the readout reads it off a vector."""
        condition = self.engine.condition(vector[None].float().to(self._device))
        offsets: Tensor = condition.offsets[0, self.shortlists[row]]
        return offsets.float().log_softmax(-1).cpu()

    def fill(self, questions: list[Question]) -> list[Ids]:
        """Fill all masks in two passes: the surer half first, then the rest in view of it."""
        for last in (False, True):
            answers = self.log_probabilities(questions)
            filled = []
            for question, scores in zip(questions, answers, strict=True):
                masked = [position for position, token in enumerate(question.canvas) if token == self.mask]
                likeliest = scores.max(1)
                canvas = list(question.canvas)
                count = len(masked) if last else -(-len(masked) // 2)
                for index in likeliest.values.argsort(descending=True)[:count].tolist():
                    canvas[masked[index]] = int(self.shortlists[question.row][likeliest.indices[index]])
                filled.append(Question(question.row, tuple(canvas)))
            questions = filled
        return [question.canvas for question in questions]
