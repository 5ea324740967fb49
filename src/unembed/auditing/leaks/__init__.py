"""Finds what a text says about people: names, numbers, addresses, secrets, health, beliefs.

Made to count, for a report, what comes back from vectors; not to find every name in a document. Works on texts as
people write them and as a tokenizer writes them back: lower case, with spaces around punctuation.
"""

from unembed.auditing.leaks.custom import CustomDetector, read_pattern, read_terms
from unembed.auditing.leaks.detectors import LeakDetectors, find_leaks
from unembed.auditing.leaks.kinds import KINDS, SPECIAL_CATEGORIES, Coverage, Kind, Leak, coverage_of, gives_back

__all__ = [
    "KINDS",
    "SPECIAL_CATEGORIES",
    "Coverage",
    "CustomDetector",
    "Kind",
    "Leak",
    "LeakDetectors",
    "coverage_of",
    "find_leaks",
    "gives_back",
    "read_pattern",
    "read_terms",
]
