"""All detectors together: a text in, its leaks out."""

from collections.abc import Sequence

from unembed.auditing.leaks.custom import CustomDetector
from unembed.auditing.leaks.kinds import KINDS, Kind, Leak
from unembed.auditing.leaks.names import ask_model, find_names, has_model
from unembed.auditing.leaks.patterns import find_patterns
from unembed.auditing.leaks.rules import Span
from unembed.auditing.leaks.terms import find_terms
from unembed.errors import ConfigError


class LeakDetectors:
    """The built-in detectors, and those of the user."""

    def __init__(self, custom: Sequence[CustomDetector] = ()) -> None:
        names = [detector.kind for detector in custom]
        if repeated := {name for name in names if names.count(name) > 1}:
            raise ConfigError(f"There are several detectors named '{min(repeated)}'.", "Give each its own name.")
        self._custom = tuple(custom)
        self.kinds: tuple[Kind, ...] = (*KINDS, *names)
        """In the order of the report."""

    def find(self, text: str) -> list[Leak]:
        """Return what a text gives away, each thing once."""
        return self.find_all([text])[0]

    def find_all(self, texts: Sequence[str]) -> list[list[Leak]]:
        """Return what each of several texts gives away."""
        return [self._find(text, by_model) for text, by_model in zip(texts, ask_model(texts), strict=True)]

    def _find(self, text: str, by_model: Sequence[Span]) -> list[Leak]:
        found, left = find_patterns(text)
        found += find_names(left, by_model)
        found += find_terms(left)
        leaks = [Leak(span.kind, text[span.start : span.end].strip()) for span in found]
        leaks += [Leak(detector.kind, item) for detector in self._custom for item in detector.find(text)]
        different = {(leak.kind, leak.runs): leak for leak in reversed(leaks) if leak.runs}
        return list(reversed(different.values()))

    @property
    def note(self) -> str:
        """What a reader of the counts should know about how they were made, as a sentence."""
        if has_model():
            return "Names and places were found by spaCy's small English model, by lists and by patterns."
        return (
            "Names and places were found by lists and patterns alone, which miss many. "
            "spaCy's small English model finds more: pip install 'unembed[leaks]'."
        )


_BUILT_IN = LeakDetectors()


def find_leaks(text: str) -> list[Leak]:
    """Return what a text gives away, by the built-in detectors, each thing once."""
    return _BUILT_IN.find(text)
