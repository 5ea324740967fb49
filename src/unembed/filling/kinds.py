"""What may stand in a slot: kinds of candidates that come with the package, and word lists. Knows no template."""

import calendar
import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

from unembed.errors import ConfigError, did_you_mean, from_os_error
from unembed.lists import load_lines
from unembed.text import well_formed

MOST_CANDIDATES = 1_000_000
"""Of one slot."""
LONGEST_FREE = 8
"""Tokens that the denoiser fills in freely."""
_FREE = "free"
_FREE_BY_DEFAULT = (1, 2, 3, 4)
_MONTHS = tuple(calendar.month_name)[1:]
_FIRST_YEAR, _LAST_YEAR = 1900, 2035
_DAYS = (31, 29, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31)
_LARGEST_AMOUNT = 1_000_000


@dataclass(frozen=True)
class Free:
    """Candidates that the denoiser writes itself, of so many tokens."""

    tokens: tuple[int, ...]


Candidates = Sequence[str] | Free


@dataclass(frozen=True)
class Kind:
    """A kind of candidates."""

    make: Callable[[str], Iterable[str]]
    """Takes what stands behind the colon."""
    meaning: str
    argument: str = ""
    """What stands behind the colon, if anything does."""


def _names(name: str) -> Kind:
    # The lists are in lower case, which encoders that mind the case would not see in a text.
    return Kind(lambda _: (line.title() for line in load_lines(name)), f"the package's list of {name}")


def _words(name: str, meaning: str) -> Kind:
    return Kind(lambda _: load_lines(name), meaning)


def _digits(argument: str) -> Iterable[str]:
    if not re.fullmatch(r"[1-6]", argument):
        raise ConfigError(f"digits:{argument} is not a number of digits.", "Write digits:4, for example; at most 6.")
    count = int(argument)
    return (f"{number:0{count}}" for number in range(10**count))


def _range(argument: str, what: str, default: tuple[int, int]) -> range:
    """Read ``1-500``, ``2024`` or nothing."""
    if not argument:
        return range(default[0], default[1] + 1)
    match = re.fullmatch(r"(\d{1,9})(?:-(\d{1,9}))?", argument)
    numbers = range(int(match[1]), int(match[2] or match[1]) + 1) if match else range(0)
    if not len(numbers):
        raise ConfigError(f"{what}:{argument} is not a range.", f"Write {what}:1-500, for example.")
    if len(numbers) > MOST_CANDIDATES:
        raise ConfigError(
            f"{what}:{argument} has {len(numbers):,} candidates.", f"Give a range of at most {MOST_CANDIDATES:,}."
        )
    return numbers


def _dates(argument: str) -> Iterable[str]:
    days = [(day, month) for month in range(12) for day in range(1, _DAYS[month] + 1)]
    if not argument:
        for day, month in days:
            yield from (f"{day} {_MONTHS[month]}", f"{_MONTHS[month]} {day}")
        return
    for year in _years(argument, "dates"):
        for day, month in days:
            if (day, month) == (29, 1) and not calendar.isleap(year):
                continue
            yield from (f"{day} {_MONTHS[month]} {year}", f"{_MONTHS[month]} {day}, {year}")
            yield from (f"{year}-{month + 1:02}-{day:02}", f"{day:02}/{month + 1:02}/{year}")


def _years(argument: str, what: str = "years") -> range:
    years = _range(argument, what, (_FIRST_YEAR, _LAST_YEAR))
    if years[-1] > 9999 or years[0] < 1 or (what == "dates" and len(years) > 200):
        raise ConfigError(f"{what}:{argument} are not years.", f"Write {what}:2024 or {what}:2020-2025, for example.")
    return years


def _amounts(argument: str) -> Iterable[str]:
    if argument:
        return (f"{amount:,}" for amount in _range(argument, "amounts", (1, 1)))
    # Up to three digits that are not zero: few amounts in texts have more.
    amounts = {digits * 10**zeros for digits in range(1, 1000) for zeros in range(7)}
    return (f"{amount:,}" for amount in sorted(amounts) if amount <= _LARGEST_AMOUNT)


def _times(_: str) -> Iterable[str]:
    return (f"{hour}:{minute:02}" for hour in range(24) for minute in range(0, 60, 5))


KINDS: dict[str, Kind] = {
    "first-names": _names("first-names"),
    "surnames": _names("surnames"),
    "cities": _names("cities"),
    "countries": _names("countries"),
    "places": _names("places"),
    "occupations": _words("occupations", "the package's list of occupations"),
    "conditions": _words("medical", "the package's list of medical terms"),
    "medicines": _words("drugs", "the package's list of medicines"),
    "months": Kind(lambda _: _MONTHS, "January to December"),
    "weekdays": Kind(lambda _: tuple(calendar.day_name), "Monday to Sunday"),
    "dates": Kind(
        _dates, "days: 3 May, May 3; of years also 3 May 2024, May 3, 2024, 2024-05-03, 03/05/2024", "YEAR or YEAR-YEAR"
    ),
    "years": Kind(lambda it: map(str, _years(it)), f"{_FIRST_YEAR} to {_LAST_YEAR}", "YEAR-YEAR"),
    "times": Kind(_times, "0:00 to 23:55, every five minutes"),
    "amounts": Kind(_amounts, "1 to 1,000,000 with up to three digits that are not zero; a range: all", "LEAST-MOST"),
    "numbers": Kind(lambda it: map(str, _range(it, "numbers", (0, 1000))), "0 to 1000, or a range", "LEAST-MOST"),
    "digits": Kind(_digits, "all numbers of so many digits, with leading zeros", "COUNT"),
}
"""All kinds by name."""
# Slots of these names need no kind.
_USUAL = {
    **{"name": "first-names", "first_name": "first-names", "surname": "surnames", "last_name": "surnames"},
    **{"city": "cities", "country": "countries", "place": "places", "occupation": "occupations", "job": "occupations"},
    **{"condition": "conditions", "medicine": "medicines", "month": "months", "weekday": "weekdays", "date": "dates"},
    **{"year": "years", "time": "times", "amount": "amounts", "number": "numbers"},
}


def usual_kind(slot: str) -> str:
    """Return the kind of a slot that nobody has given candidates for: by its name, else free."""
    name = slot.rstrip("0123456789").replace("-", "_")
    return slot if slot in KINDS else _USUAL.get(name, _FREE)


def candidates_of(kind: str, most: int = MOST_CANDIDATES) -> Candidates:
    """Return the candidates of a kind, which may have an argument: ``cities``, ``digits:4``, ``free:2``.

    If there are more than ``most``, the first ones and one too many.
    """
    name, _, argument = kind.partition(":")
    if name == _FREE:
        return _free(argument)
    if name not in KINDS:
        raise ConfigError(
            f"There is no kind '{name}': {did_you_mean(name, [*KINDS, _FREE])}",
            "Name a kind, or give a list of candidates (`wordlist=SLOT=FILE`).",
        )
    if argument and not KINDS[name].argument:
        raise ConfigError(f"The kind '{name}' takes nothing behind a colon.", f"Write {name} alone.")
    return list(islice(KINDS[name].make(argument), most + 1))


def read_wordlist(path: Path) -> list[str]:
    """Return the lines of a file without the empty ones, each once."""
    try:
        text = path.read_text(encoding="utf-8-sig")
    except OSError as error:
        raise from_os_error(error, f"reading the word list {path}") from error
    except UnicodeDecodeError as error:
        raise ConfigError(f"{path} is not a text file in UTF-8.", "Give one candidate per line, as text.") from error
    return list(text.splitlines())


def clean(values: Iterable[str], slot: str, most: int = MOST_CANDIDATES) -> list[str]:
    """Return candidates without spaces around them, without empty ones, and each once; ``most`` are allowed."""
    cleaned = list(dict.fromkeys(stripped for value in values if (stripped := well_formed(value).strip())))
    if not cleaned:
        raise ConfigError(
            f"There are no candidates for the slot '{slot}': the list is empty.",
            "Give at least one; in a file, one per line.",
        )
    if len(cleaned) > most:
        raise ConfigError(
            f"The slot '{slot}' has more than {most:,} candidates.", "Give a shorter list, or a kind with fewer."
        )
    return cleaned


def _free(argument: str) -> Free:
    if not argument:
        return Free(_FREE_BY_DEFAULT)
    if not re.fullmatch(r"\d", argument) or not 1 <= int(argument) <= LONGEST_FREE:
        raise ConfigError(
            f"free:{argument} is not a number of tokens.", f"Write free:2, for example; at most {LONGEST_FREE}."
        )
    return Free((int(argument),))
