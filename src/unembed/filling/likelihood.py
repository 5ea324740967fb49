"""How likely the denoiser finds candidates in the slots of a template, given a vector. Does not ask the encoder.

One pass per number of tokens says how likely every candidate of that length is: the slots are masked, and the
log-probabilities of a candidate's tokens are added up. The best are then read token by token, each in view of those
before it.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from math import log

import numpy as np
from tokenizers import Tokenizer
from torch import Tensor

from unembed.engine import Engine
from unembed.errors import ConfigError
from unembed.filling.asking import IMPOSSIBLE, ask_masks, close_canvas_for, length_scores
from unembed.filling.pieces import Pieces, read_filled
from unembed.filling.template import Template
from unembed.model import NoiseSchedule

Combination = tuple[int, ...]
"""The index of a candidate for each slot."""

# Numbers of tokens for each slot that are tried, those of most candidates first.
_MOST_SHAPES = 64
# Candidates of each slot that are combined with those of the others.
_COMBINED = 64


@dataclass(frozen=True)
class Shape:
    """A canvas whose slots are masked."""

    counts: tuple[int, ...]
    """Tokens of each slot."""
    canvas: list[int]
    slots: list[list[int]]
    """Positions of each slot's tokens."""
    length: int
    """Tokens of the text: a fixed canvas is longer."""


class SlotLikelihood:
    """Scores the candidates of a template's slots by the denoiser."""

    def __init__(
        self,
        engine: Engine,
        noise: NoiseSchedule,
        tokenizer: Tokenizer,
        template: Template,
        candidates: Sequence[Sequence[str]],
        pieces: Sequence[Pieces],
    ) -> None:
        self._engine, self._noise, self._tokenizer = engine, noise, tokenizer
        self._template, self._candidates, self._pieces = template, candidates, pieces
        self._shapes = self._make_shapes()

    @property
    def possible(self) -> bool:
        """Whether a canvas holds the template with at least some of its candidates."""
        return bool(self._shapes)

    def refuse_longer(self) -> None:
        """Raise if no canvas holds the template."""
        if not self.possible:
            longest = self._engine.config.canvas_length
            raise ConfigError(
                f"The template has more than {longest} tokens, or slots that touch: no canvas holds it.",
                "Without the encoder, change the template; with the encoder it may have any length.",
            )

    def _make_shapes(self) -> list[Shape]:
        """Return the canvases to ask about: one for each number of tokens that candidates have."""
        examples = [
            {int(count): np.flatnonzero(pieces.counts == count) for count in np.unique(pieces.counts) if count}
            for pieces in self._pieces
        ]
        sizes = [
            sorted(((count, log(len(rows))) for count, rows in own.items()), key=lambda entry: -entry[1])
            for own in examples
        ]
        shapes = []
        for largest in _best_sums(sizes, _MOST_SHAPES):
            counts = tuple(count for count, _ in largest)
            values = [self._candidates[slot][examples[slot][count][0]] for slot, count in enumerate(counts)]
            ids, slots = read_filled(self._tokenizer, self._template, values)
            masked = {position for slot in slots for position in slot}
            if [len(slot) for slot in slots] != list(counts) or len(masked) != sum(counts):
                continue  # slots that touch share a token
            if len(ids) > self._engine.config.canvas_length:
                continue
            mask = self._engine.vocabulary.mask
            canvas = [mask if place in masked else token for place, token in enumerate(ids)]
            shapes.append(Shape(counts, close_canvas_for(self._engine, canvas), slots, len(ids)))
        return shapes

    def score(self, vector: Tensor) -> tuple[list[np.ndarray], list[tuple[Combination, float]]]:
        """Return the log-probabilities of each slot's candidates, and the likeliest combinations, best first.

        A slot's candidates are scored with the lengths of the other slots that suit them best.
        """
        lengths = length_scores(self._engine, vector)
        singles = [np.full(len(pieces), IMPOSSIBLE, dtype=np.float32) for pieces in self._pieces]
        together: dict[Combination, float] = {}
        for shape, scores in zip(
            self._shapes,
            ask_masks(self._engine, self._noise, vector, [shape.canvas for shape in self._shapes]),
            strict=True,
        ):
            by_slot = []
            start = 0
            for slot, (pieces, count) in enumerate(zip(self._pieces, shape.counts, strict=True)):
                rows = np.flatnonzero(pieces.counts == count)
                ids = pieces.ids[rows, :count]
                part = scores[start : start + count]
                start += count
                known = ids < part.shape[1]
                own = np.where(known, part[np.arange(count), np.where(known, ids, 0)], IMPOSSIBLE).sum(1)
                total = np.maximum(own + lengths[shape.length], IMPOSSIBLE)
                singles[slot][rows] = np.maximum(singles[slot][rows], total)
                best = np.argsort(-own, kind="stable")[:_COMBINED]
                by_slot.append(list(zip(rows[best].tolist(), own[best].tolist(), strict=True)))
            for combination in _best_sums(by_slot, _COMBINED):
                key = tuple(candidate for candidate, _ in combination)
                together[key] = sum(score for _, score in combination) + lengths[shape.length]
        return singles, sorted(together.items(), key=lambda item: -item[1])

    def read(self, vector: Tensor, combinations: Sequence[Combination]) -> np.ndarray:
        """Return the log-probabilities of combinations, read token by token from the left: (n,)."""
        lengths = length_scores(self._engine, vector)
        totals = np.full(len(combinations), IMPOSSIBLE, dtype=np.float32)
        by_counts = {shape.counts: shape for shape in self._shapes}
        groups: dict[tuple[int, ...], list[int]] = {}
        for row, combination in enumerate(combinations):
            counts = tuple(int(pieces.counts[each]) for pieces, each in zip(self._pieces, combination, strict=True))
            if counts in by_counts:
                groups.setdefault(counts, []).append(row)
        for counts, rows in groups.items():
            shape = by_counts[counts]
            wanted = [
                [t for pieces, each in zip(self._pieces, combinations[row], strict=True) for t in pieces.of(each)]
                for row in rows
            ]
            positions = [position for slot in shape.slots for position in slot]
            canvases = [list(shape.canvas) for _ in rows]
            totals[rows] = lengths[shape.length]
            for place, position in enumerate(positions):
                scores = ask_masks(self._engine, self._noise, vector, canvases, first_only=True)
                for row, answer, tokens in zip(rows, scores, wanted, strict=True):
                    token = tokens[place]
                    totals[row] += float(answer[0, token]) if token < answer.shape[1] else IMPOSSIBLE
                for canvas, tokens in zip(canvases, wanted, strict=True):
                    canvas[position] = tokens[place]
        result: np.ndarray = np.maximum(totals, IMPOSSIBLE)
        return result


def _best_sums(by_slot: Sequence[Sequence[tuple[int, float]]], count: int) -> list[tuple[tuple[int, float], ...]]:
    """Return the combinations of one entry per slot with the largest sums; each slot's entries come best first."""
    best: list[tuple[tuple[int, float], ...]] = [()]
    for entries in by_slot:
        longer = [(*combination, entry) for combination in best for entry in entries]
        best = sorted(longer, key=lambda combination: -sum(score for _, score in combination))[:count]
    return best
