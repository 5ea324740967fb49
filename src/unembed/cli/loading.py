"""What is being loaded, on stderr, so that the first seconds are not blank. Imports next to nothing: must be fast."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager

from unembed.text import printable

_CLEAR_LINE = "\r\x1b[K"


@contextmanager
def loading(what: str) -> Iterator[None]:
    """Show a line in the terminal while something is loaded; elsewhere nothing, so that logs stay short."""
    shown = sys.stderr.isatty()
    if shown:
        sys.stderr.write(f"Loading {printable(what)} ...")
        sys.stderr.flush()
    try:
        yield
    finally:
        if shown:
            sys.stderr.write(_CLEAR_LINE)
            sys.stderr.flush()
