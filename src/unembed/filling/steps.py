"""Work that can pause: it yields wherever other work may go in between, and returns its result. Knows no search."""

from collections.abc import Generator
from typing import TypeVar

T = TypeVar("T")

Steps = Generator[None, None, T]
"""Work that is done bit by bit, in any thread."""


def finish(steps: Steps[T]) -> T:
    """Do all the work at once, and return its result."""
    while True:
        try:
            next(steps)
        except StopIteration as end:
            result: T = end.value
            return result
