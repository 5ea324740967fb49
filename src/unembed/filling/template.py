"""Templates: known text with named slots. Knows nothing of candidates, tokens or vectors."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from string import Formatter

from unembed.errors import ConfigError
from unembed.text import well_formed

_NAME = re.compile(r"[^\W\d][\w-]*")
_ESCAPE = "Write {{ and }} for braces that are text."


@dataclass(frozen=True)
class Slot:
    """A gap in a template."""

    name: str
    kind: str | None = None
    """What the template itself says about its candidates: ``{pin:digits:4}``."""


@dataclass(frozen=True)
class Template:
    """Text with at least one slot."""

    texts: tuple[str, ...]
    """The known parts: before the first slot, between slots, and after the last one. One more than there are slots."""
    slots: tuple[Slot, ...]

    @classmethod
    def parse(cls, text: str) -> "Template":
        """Read a template: ``Dear {name}, your PIN is {pin:digits:4}``; ``{{`` and ``}}`` stand for braces."""
        try:
            parts = list(Formatter().parse(well_formed(text)))
        except ValueError as error:
            raise ConfigError(f"The template has a brace without its partner: {text}", _ESCAPE) from error
        known, slots = [""], []
        for before, name, kind, conversion in parts:
            known[-1] += before
            if name is None:
                continue
            if conversion or not _NAME.fullmatch(name):
                raise ConfigError(
                    f"'{{{name}}}' is not a slot: a name has letters, digits, _ and -, and begins with a letter.",
                    f"Name it like this: {{name}}. {_ESCAPE}",
                )
            slots.append(Slot(name, kind or None))
            known.append("")
        names = [slot.name for slot in slots]
        if not slots:
            raise ConfigError(
                f"The template has no slot: {text}", 'Mark what is unknown, for example: "Dear {name}, thank you."'
            )
        if twice := next((name for name in names if names.count(name) > 1), None):
            raise ConfigError(
                f"The slot '{twice}' stands in the template twice.",
                f"Give each slot a name of its own, for example {{{twice}}} and {{{twice}2}}.",
            )
        return cls(tuple(known), tuple(slots))

    @property
    def names(self) -> list[str]:
        """The names of the slots, in order."""
        return [slot.name for slot in self.slots]

    def fill(self, values: Sequence[str]) -> str:
        """Return the text with a value in each slot."""
        return self.texts[0] + "".join(value + text for value, text in zip(values, self.texts[1:], strict=True))

    def spans(self, values: Sequence[str]) -> list[tuple[int, int]]:
        """Return where each value begins and ends in the filled text."""
        spans, place = [], len(self.texts[0])
        for value, text in zip(values, self.texts[1:], strict=True):
            spans.append((place, place + len(value)))
            place += len(value) + len(text)
        return spans
