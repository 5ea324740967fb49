"""Precision and recall of the detectors on labelled lines.

A line marks what it gives away: ``[Maria Keller|names] paid [40 euros|amounts of money].`` A line without marks gives
nothing away.
"""

import re
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from unembed.auditing.leaks.kinds import Kind, Leak, holds

_MARK = re.compile(r"\[(?P<text>[^\[\]|]+)\|(?P<kind>[^\[\]|]+)\]")


@dataclass(frozen=True)
class LabelledLine:
    """A text and what it gives away."""

    text: str
    leaks: list[Leak]

    @classmethod
    def parse(cls, line: str) -> "LabelledLine":
        """Read a line with marks."""
        leaks = [Leak(match["kind"], match["text"]) for match in _MARK.finditer(line)]
        return cls(_MARK.sub(r"\g<text>", line), leaks)


@dataclass(frozen=True)
class Score:
    """How well one kind is found."""

    labelled: int
    found: int
    right: int
    """Found items that are labelled."""
    recalled: int
    """Labelled items that are found."""

    @property
    def precision(self) -> float:
        """Share of the found items that are labelled; 1 where nothing is found."""
        return self.right / self.found if self.found else 1.0

    @property
    def recall(self) -> float:
        """Share of the labelled items that are found; 1 where there are none."""
        return self.recalled / self.labelled if self.labelled else 1.0


def score(
    lines: Iterable[LabelledLine], find: Callable[[str], Sequence[Leak]], kinds: Sequence[Kind]
) -> dict[Kind, Score]:
    """Compare what is found with what is labelled.

    Both are the same item when they are of one kind and the words of one occur in the other: "Keller" is enough for
    "Maria Keller".
    """
    labelled: Counter[Kind] = Counter()
    found: Counter[Kind] = Counter()
    right: Counter[Kind] = Counter()
    recalled: Counter[Kind] = Counter()
    for line in lines:
        items = find(line.text)
        labelled.update(leak.kind for leak in line.leaks)
        found.update(leak.kind for leak in items)
        right.update(leak.kind for leak in items if any(map(leak_matches(leak), line.leaks)))
        recalled.update(leak.kind for leak in line.leaks if any(map(leak_matches(leak), items)))
    return {kind: Score(labelled[kind], found[kind], right[kind], recalled[kind]) for kind in kinds}


def leak_matches(leak: Leak) -> Callable[[Leak], bool]:
    """Return a function that says whether another leak is the same item."""
    return lambda other: leak.kind == other.kind and (holds(leak.runs, other.runs) or holds(other.runs, leak.runs))
