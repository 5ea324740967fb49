"""Detectors of a user's own: a pattern, or a list of terms."""

import re
from dataclasses import dataclass
from pathlib import Path

from unembed.auditing.leaks.kinds import KINDS, Kind
from unembed.auditing.leaks.terms import terms_pattern
from unembed.corpus import read_texts
from unembed.errors import ConfigError

# A tokenizer writes "ab - 12" for "AB-12": the pattern is also tried without these spaces.
_LOOSE = re.compile(r"(?<=\S)\s?([-./@:_'#+])\s?(?=\S)")


@dataclass(frozen=True)
class CustomDetector:
    """Finds one more kind."""

    kind: Kind
    pattern: re.Pattern[str]

    def find(self, text: str) -> list[str]:
        """Return what the pattern matches, in the text as it is and without the spaces around its punctuation."""
        tight = _LOOSE.sub(r"\1", text)
        return [match[0] for form in dict.fromkeys((text, tight)) for match in self.pattern.finditer(form)]


def read_pattern(definition: str) -> CustomDetector:
    """Return the detector that ``NAME=REGEX`` defines; upper and lower case do not matter."""
    kind, equals, pattern = definition.partition("=")
    if not equals or not kind.strip() or not pattern:
        raise ConfigError(
            f"'{definition}' does not define a detector.", "Write NAME=REGEX, for example 'ticket=TCK-[0-9]+'."
        )
    try:
        compiled = re.compile(pattern, re.IGNORECASE)
    except re.error as error:
        raise ConfigError(f"'{pattern}' is not a regular expression: {error}.", "Fix it, and run again.") from error
    if compiled.fullmatch(""):
        raise ConfigError(f"'{pattern}' matches the empty text.", "Ask for at least one character.")
    return CustomDetector(_new_kind(kind.strip()), compiled)


def read_terms(path: str | Path) -> CustomDetector:
    """Return a detector of the terms in a file, one per line; its kind is the file's name without the ending."""
    terms = [term for term in map(str.strip, read_texts(str(path))) if re.search(r"\w", term)]
    if not terms:
        raise ConfigError(f"{path} has no terms.", "Write one word or phrase on each line.")
    return CustomDetector(_new_kind(Path(path).stem), terms_pattern(tuple(dict.fromkeys(terms))))


def _new_kind(name: str) -> Kind:
    if name in KINDS:
        raise ConfigError(f"'{name}' is a kind that is built in.", "Choose another name.")
    return name
