"""What the edits of a search did to vectors, and which of them can be done to a hypothesis. No model, no encoder."""

import numpy as np

from unembed.decoding.guided.composition import compose
from unembed.decoding.guided.edits import Change, Edit, apply, locate
from unembed.decoding.guided.hypothesis import Hypothesis, Ids

_CONSIDERED = 400
_PER_CELL = 12


class EditMemory:
    """Remembers the difference that each edit made to the vector of the text that it was tried on."""

    def __init__(self) -> None:
        self._differences: dict[Edit, tuple[np.ndarray, float]] = {}

    def learn(self, edit: Edit, difference: np.ndarray, bonus: float) -> None:
        """Take in what an edit did; it replaces what was known about it."""
        self._differences.pop(edit, None)
        self._differences[edit] = difference, bonus

    def knows(self, edit: Edit) -> bool:
        """Whether an edit was tried."""
        return edit in self._differences

    def combine(self, hypothesis: Hypothesis, target: np.ndarray, weight: float, cost: float) -> list[tuple]:
        """Return texts that edits which are known could make of a hypothesis: score, text, number of edits."""
        positions = {slot: position for position, slot in enumerate(hypothesis.slots)}
        located: list[list[Change]] = []
        differences: list[np.ndarray] = []
        fluency: list[float] = []
        for edit, (difference, change) in self._differences.items():
            changes = locate(edit, positions)
            if changes is not None:
                located.append(changes)
                differences.append(difference)
                fluency.append(change)
        if not located:
            return []
        matrix = np.stack(differences)
        bonus = weight * np.array(fluency) - cost
        chosen = _most_promising(hypothesis.vector, target, matrix, located, bonus)
        bonus = bonus[chosen]
        located, matrix = [located[index] for index in chosen], matrix[chosen]
        cells = np.zeros((len(located), 2 * len(hypothesis.ids) + 1), dtype=bool)
        for row, changes in enumerate(located):
            for start, end, _ in changes:
                # A token is an odd cell, the gap before it an even one.
                if start == end:
                    cells[row, 2 * start] = True
                else:
                    cells[row, 2 * start + 1 : 2 * end] = True
        results = []
        for composition in compose(hypothesis.vector, target, matrix, cells, bonus):
            changes = [change for index in composition.edits for change in located[index]]
            change = sum(fluency[chosen[index]] for index in composition.edits)
            results.append((composition.cosine, apply(hypothesis.ids, changes), change, len(composition.edits)))
        return results


def _most_promising(
    vector: np.ndarray, target: np.ndarray, differences: np.ndarray, located: list[list[Change]], bonus: np.ndarray
) -> list[int]:
    """Choose edits by what each promises alone, and not too many of one position."""
    moved = vector + differences
    cosine = moved @ target / np.sqrt((moved**2).sum(1)) + bonus
    taken: dict[tuple[int, bool], int] = {}
    chosen = []
    for index in np.argsort(-cosine, kind="stable").tolist():
        start, end, _ = located[index][0]
        cell = (start, start == end)
        if taken.get(cell, 0) < _PER_CELL or len(located[index]) > 1:
            taken[cell] = taken.get(cell, 0) + 1
            chosen.append(index)
        if len(chosen) == _CONSIDERED:
            break
    return chosen
