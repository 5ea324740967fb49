"""Edits: what makes one text out of another, in a form that holds for related texts too. Knows ids only, no vectors.

Every token of a hypothesis has a slot, a number that stays with it when the text around it changes. An edit names
slots instead of positions, so what was learnt about an edit of one hypothesis can be used for all its relatives.
"""

from collections.abc import Sequence
from difflib import SequenceMatcher
from typing import NamedTuple

from unembed.decoding.guided.hypothesis import Ids, Slots

START = 0
"""The slot before the first token."""


class Patch(NamedTuple):
    """A run of tokens that is replaced by others; either may be empty."""

    after: int
    """The slot before the run."""
    removed: Slots
    added: Ids


Edit = tuple[Patch, ...]


class Change(NamedTuple):
    """A patch of one text: the tokens from ``start`` to ``end`` are replaced."""

    start: int
    end: int
    added: Ids


def compare(before: Ids, after: Ids) -> list[Change]:
    """Return what has to be replaced to make one text out of another."""
    shorter = min(len(before), len(after))
    start = 0
    while start < shorter and before[start] == after[start]:
        start += 1
    same = 0
    while same < shorter - start and before[-1 - same] == after[-1 - same]:
        same += 1
    old, new = before[start : len(before) - same], after[start : len(after) - same]
    if not old and not new:
        return []
    if len(old) < 2 or len(new) < 2:
        return [Change(start, start + len(old), new)]
    matcher = SequenceMatcher(None, old, new, autojunk=False)
    return [
        Change(start + low, start + high, new[first:last])
        for kind, low, high, first, last in matcher.get_opcodes()
        if kind != "equal"
    ]


def apply(ids: Ids, changes: Sequence[Change]) -> Ids:
    """Return the changed text. Changes must not overlap."""
    for start, end, added in sorted(changes, reverse=True):
        ids = (*ids[:start], *added, *ids[end:])
    return ids


class SlotBook:
    """Gives slots to tokens: the same token, put by the same patch, always gets the same slot."""

    def __init__(self) -> None:
        self._slots: dict[tuple[Patch, int], int] = {}

    def first(self, ids: Ids) -> Slots:
        """Return the slots of a text that has no relatives yet."""
        return self._added(Patch(START, (), ids))

    def edit(self, slots: Slots, changes: Sequence[Change]) -> Edit:
        """Return the edit that makes these changes to a text with these slots."""
        return tuple(
            Patch(slots[start - 1] if start else START, slots[start:end], added) for start, end, added in changes
        )

    def after(self, slots: Slots, changes: Sequence[Change]) -> Slots:
        """Return the slots of the changed text."""
        for change in sorted(changes, reverse=True):
            (patch,) = self.edit(slots, [change])
            slots = (*slots[: change.start], *self._added(patch), *slots[change.end :])
        return slots

    def _added(self, patch: Patch) -> Slots:
        return tuple(self._slots.setdefault((patch, index), len(self._slots) + 1) for index in range(len(patch.added)))


def locate(edit: Edit, positions: dict[int, int]) -> list[Change] | None:
    """Return the changes that an edit makes to a text, given the position of each of its slots; None if it has none."""
    changes = []
    for after, removed, added in edit:
        if removed:
            start = positions.get(removed[0])
            if start is None or any(positions.get(slot) != start + index for index, slot in enumerate(removed)):
                return None
            changes.append(Change(start, start + len(removed), added))
        else:
            previous = -1 if after == START else positions.get(after)
            if previous is None:
                return None
            changes.append(Change(previous + 1, previous + 1, added))
    return changes
