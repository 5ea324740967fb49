"""Which candidates belong to which slot of a template. Imports nothing heavy: mistakes are found before models load."""

from collections.abc import Mapping, Sequence
from pathlib import Path

from unembed.errors import ConfigError, did_you_mean
from unembed.filling.kinds import MOST_CANDIDATES, Candidates, Free, candidates_of, clean, read_wordlist, usual_kind
from unembed.filling.template import Template

GivenCandidates = Mapping[str, str | Sequence[str]]
"""By slot: a kind, or a list."""


def choose_candidates(template: Template, given: GivenCandidates, *, most: int = MOST_CANDIDATES) -> list[Candidates]:
    """Return the candidates of each slot, ``most`` at most: those given, by kind or as a list; else by its name."""
    if unknown := next((name for name in given if name not in template.names), None):
        raise ConfigError(
            f"The template has no slot '{unknown}': {did_you_mean(unknown, template.names)}",
            f"Write {{{unknown}}} in the template, or leave its candidates out.",
        )
    chosen: list[Candidates] = []
    for slot in template.slots:
        wanted = given.get(slot.name, slot.kind or usual_kind(slot.name))
        candidates = candidates_of(wanted, most) if isinstance(wanted, str) else wanted
        chosen.append(candidates if isinstance(candidates, Free) else clean(candidates, slot.name, most))
    return chosen


def read_choices(kinds: Sequence[str], wordlists: Sequence[str]) -> dict[str, str | list[str]]:
    """Read what the user has typed: ``SLOT=KIND``, and ``SLOT=FILE`` for word lists."""
    given: dict[str, str | list[str]] = {}
    for parameter, texts in (("slot", kinds), ("wordlist", wordlists)):
        for text in texts:
            name, sign, value = text.partition("=")
            if not (name and sign and value):
                raise ConfigError(
                    f"`{parameter}={text}` does not say which slot it is for.",
                    f"Write `{parameter}=SLOT={'KIND' if parameter == 'slot' else 'FILE'}`.",
                )
            if name in given:
                raise ConfigError(f"The slot '{name}' is given candidates twice.", "Give them once.")
            given[name] = value if parameter == "slot" else read_wordlist(Path(value))
    return given
