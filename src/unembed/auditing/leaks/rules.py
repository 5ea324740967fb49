"""A rule: a kind, and how what has the form of it is found in a text. Knows no forms."""

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from unembed.auditing.leaks.kinds import Kind


@dataclass(frozen=True)
class Span:
    """Where a text holds something."""

    kind: Kind
    start: int
    end: int


@dataclass(frozen=True)
class Rule:
    """Finds one form of a kind."""

    kind: Kind | None
    """None for what is nobody's, but looks like something else."""
    find: Callable[[str], Iterator[tuple[int, int]]]


def form(kind: Kind | None, pattern: str, accept: Callable[[re.Match[str]], bool] = lambda match: True) -> Rule:
    """Return a rule for what a pattern matches in any case, and ``accept`` takes; a group ``item`` is what counts."""
    compiled = re.compile(pattern, re.IGNORECASE)

    def find(text: str) -> Iterator[tuple[int, int]]:
        for match in compiled.finditer(text):
            if accept(match):
                yield match.span("item" if match.groupdict().get("item") else 0)

    return Rule(kind, find)


def apply_rules(rules: Sequence[Rule], text: str) -> tuple[list[Span], str]:
    """Apply rules in order; return what they found, and the text with spaces instead of it.

    What a rule has found, no later rule sees: what is a date is no phone number.
    """
    spans, left = [], text
    for rule in rules:
        for start, end in rule.find(left):
            if rule.kind:
                spans.append(Span(rule.kind, start, end))
            left = left[:start] + " " * (end - start) + left[end:]
    return spans, left


def before(match: re.Match[str], width: int = 40) -> str:
    """Return what stands before a match."""
    return match.string[max(0, match.start() - width) : match.start()]
