"""Small word lists, written for this package: one word a line, lower case. Good enough for a report, never complete."""

from functools import cache
from importlib.resources import files


@cache
def load_list(name: str) -> frozenset[str]:
    """Return the words of ``<name>.txt``."""
    return frozenset(load_lines(name))


def load_lines(name: str) -> list[str]:
    """Return the lines of ``<name>.txt``."""
    return list(_read(name))


@cache  # detectors ask for every text
def _read(name: str) -> tuple[str, ...]:
    text = files(__package__).joinpath(f"{name}.txt").read_text(encoding="utf-8")
    return tuple(line for line in map(str.strip, text.splitlines()) if line)
