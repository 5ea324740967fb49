"""What the edits of a search did, and which of them could be done together. No model, no encoder."""

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import chain

import numpy as np

from unembed.decoding.guided.composition import compose
from unembed.decoding.guided.edits import Change, Edit, apply, locate
from unembed.decoding.guided.fluency import FluencyScore
from unembed.decoding.guided.hypothesis import Attempt, Hypothesis

COMPOSE = "compose"
"""The move that does several edits together."""
# Edits that are combined, and how many of them may begin at one token or in one gap.
_CONSIDERED = 400
_ALTERNATIVES = 12
# Two texts are nearly the same if they differ by so many tokens, counted on both sides.
_NEARLY = 4


@dataclass(frozen=True)
class Effect:
    """What an edit did to the text that it was tried on."""

    difference: np.ndarray
    """(d,) what it added to the vector."""
    fluency: float
    """What it added to the fluency."""
    move: str
    """Which move tried it."""
    slots: frozenset[int]
    """Of the text that it was tried on."""


class EditMemory:
    """Remembers the effects of edits, and predicts what they would do together to a hypothesis."""

    def __init__(self, target: np.ndarray, fluency: FluencyScore) -> None:
        self._target = target
        self._fluency = fluency
        self._effects: dict[Edit, Effect] = {}
        self._guesses: dict[Edit, Effect] = {}

    def learn(self, edit: Edit, effect: Effect) -> None:
        """Take in what an edit did; it replaces what was known about it."""
        self._effects[edit] = effect
        self._guesses.pop(edit, None)

    def guess(self, guesses: Mapping[Edit, Effect]) -> None:
        """Take in what edits should do, for those that were never tried; it replaces all earlier guesses."""
        self._guesses = {edit: effect for edit, effect in guesses.items() if edit not in self._effects}

    def knows(self, edit: Edit, hypothesis: Hypothesis) -> bool:
        """Whether an edit was tried on nearly the same text."""
        effect = self._effects.get(edit)
        return effect is not None and len(effect.slots.symmetric_difference(hypothesis.slots)) <= _NEARLY

    def combine(self, parent: Hypothesis, cost: float) -> list[tuple[float, Attempt]]:
        """Combine the known edits that fit a hypothesis.

        Args:
            parent: the hypothesis that is edited.
            cost: how much each edit lowers the score of a combination, because effects do not add up perfectly.

        Returns:
            The texts with their expected scores, the best first.
        """
        located, effects = self._applicable(parent)
        if not effects:
            return []
        differences = np.stack([effect.difference for effect in effects])
        added = np.array([sum(len(new) - (end - start) for start, end, new in changes) for changes in located])
        fluency = parent.fluency + np.array([effect.fluency for effect in effects])
        start = float(self._fluency(parent.fluency, len(parent.ids)))
        bonus = self._fluency(fluency, len(parent.ids) + added) - start - cost
        chosen = self._most_promising(parent, located, differences, bonus)
        cells = _cells([located[index] for index in chosen], len(parent.ids))
        attempts = []
        for combination in compose(parent.vector, self._target, differences[chosen], cells, bonus[chosen]):
            edits = [chosen[index] for index in combination.edits]
            changes = [change for index in edits for change in located[index]]
            total = parent.fluency + sum(effects[index].fluency for index in edits)
            used = tuple(effects[index].move for index in edits)
            attempt = Attempt(apply(parent.ids, changes), total, parent, COMPOSE, combination.cosine, used)
            attempts.append((start + combination.score, attempt))
        return attempts

    def _applicable(self, parent: Hypothesis) -> tuple[list[list[Change]], list[Effect]]:
        positions = {slot: position for position, slot in enumerate(parent.slots)}
        located, effects = [], []
        for edit, effect in chain(self._effects.items(), self._guesses.items()):
            changes = locate(edit, positions)
            if changes is not None:
                located.append(changes)
                effects.append(effect)
        return located, effects

    def _most_promising(
        self, parent: Hypothesis, located: list[list[Change]], differences: np.ndarray, bonus: np.ndarray
    ) -> list[int]:
        """Choose edits by what each promises alone, and not too many that begin at the same position."""
        moved = parent.vector + differences
        promise = moved @ self._target / np.linalg.norm(moved, axis=1) + bonus
        taken: dict[tuple[int, bool], int] = {}
        chosen = []
        for index in np.argsort(-promise, kind="stable").tolist():
            start, end, _ = located[index][0]
            cell = (start, start == end)
            taken[cell] = taken.get(cell, 0) + 1
            if taken[cell] <= _ALTERNATIVES:
                chosen.append(index)
        return chosen[:_CONSIDERED]


def _cells(located: list[list[Change]], length: int) -> np.ndarray:
    """Return which parts of a text each edit touches: its tokens are the odd columns, the gaps the even ones."""
    cells = np.zeros((len(located), 2 * length + 1), dtype=bool)
    for row, changes in enumerate(located):
        for start, end, _ in changes:
            if start == end:
                cells[row, 2 * start] = True
            else:
                cells[row, 2 * start + 1 : 2 * end] = True
    return cells
