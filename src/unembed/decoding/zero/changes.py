"""The changes of a text that are worth a closer look: one word more, less, other, or elsewhere. Embeds nothing."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from unembed.decoding.zero.words import WordBank, Words

# Words tried at each position: the likeliest that also bring the text nearer, and those that promise most.
_LIKELY, _WANTED = 12, 8
# What a log-probability of 1 nat is worth relative to a word's gain, when changes are ranked before they are embedded.
_NAT = 0.02
# One more word costs this much less: a text with more words is less likely in any case.
_FREE_NATS = 5.0
# A word that the language model does not expect at all may still be the right one: a name, for example.
_LEAST_LIKELY = -9.0
# A word of more letters than this stands in a text once: language models like to repeat what they have read.
_REPEATABLE = 3
# What is assumed of changes that bring no new word.
_REMOVED, _MOVED_NEXT, _MOVED = 0.2, 0.05, -0.05


@dataclass(frozen=True)
class Edit:
    """Some words of a text replaced by others."""

    start: int
    end: int
    new: Words

    def apply(self, text: Words) -> Words:
        """Return the changed text."""
        return text[: self.start] + self.new + text[self.end :]


@dataclass(frozen=True)
class Change:
    """A changed text."""

    words: Words
    promise: float
    """How much it promises at a glance; compares with other changes of the same text."""
    nats: float
    """Estimated log-probability that the change adds."""
    edit: Edit | None = None
    """What was changed, where that can be combined with other changes."""


def propose(text: Words, bank: WordBank, gains: np.ndarray, likely: np.ndarray) -> list[Change]:
    """Return changes of a text, the most promising first.

    Args:
        text: what is changed.
        bank: the words that may be put in.
        gains: (words,) how much nearer each word should bring the text.
        likely: (n + 1, words) log-probability of each word at each position.
    """
    changes = [*_removals(text), *_moves(text)]
    wanted = _first(gains, _WANTED)
    for place in range(len(text) + 1):
        promise = gains + _NAT * (np.maximum(likely[place], _LEAST_LIKELY) + _FREE_NATS)
        old = bank.index.get(text[place]) if place < len(text) else None
        for word in dict.fromkeys(_first(promise, _LIKELY) + wanted):
            new, nats = (bank.words[word],), float(likely[place, word])
            if not _may_repeat(new[0], text, place):
                continue
            changes.append(_change(text, Edit(place, place, new), float(promise[word]), nats))
            if place < len(text):
                lost = (0.0, 0.0) if old is None else (float(promise[old]), float(likely[place, old]))
                edit = Edit(place, place + 1, new)
                changes.append(_change(text, edit, float(promise[word]) - lost[0], nats - lost[1]))
    return sorted(changes, key=lambda change: -change.promise)


def combine(text: Words, edits: Sequence[tuple[Edit, float]]) -> list[Change]:
    """Return the text with each two edits that do not touch each other, given what each adds in nats."""
    changes = []
    for number, (first, nats) in enumerate(edits):
        for second, more in edits[number + 1 :]:
            early, late = sorted((first, second), key=lambda edit: (edit.start, edit.end))
            if early.end < late.start or (early.end == late.start and early.start < early.end):
                changes.append(Change(early.apply(late.apply(text)), 0.0, nats + more))
    return changes


def _may_repeat(word: str, text: Words, place: int) -> bool:
    """Whether a word may be put before a place of a text, given that it may stand there already."""
    if word in text[max(0, place - 1) : place + 1]:
        return False
    return len(word) <= _REPEATABLE or word not in text


def _change(text: Words, edit: Edit, promise: float, nats: float) -> Change:
    return Change(edit.apply(text), promise, nats, edit)


def _first(scores: np.ndarray, count: int) -> list[int]:
    """Return the places of the largest scores, in no order."""
    best: list[int] = np.argpartition(-scores, min(count, len(scores) - 1))[:count].tolist()
    return best


def _removals(text: Words) -> list[Change]:
    if len(text) == 1:
        return []
    return [_change(text, Edit(place, place + 1, ()), _REMOVED, 0.0) for place in range(len(text))]


def _moves(text: Words) -> list[Change]:
    changes = []
    for origin in range(len(text)):
        rest = text[:origin] + text[origin + 1 :]
        for place in range(len(text)):
            if place not in (origin, origin - 1):  # one to the left is the neighbour's move to the right
                promise = _MOVED_NEXT if abs(place - origin) == 1 else _MOVED
                changes.append(Change((*rest[:place], text[origin], *rest[place:]), promise, 0.0))
    return changes
