"""Several streams of texts into one, by weight. Knows nothing of files or of what the texts are.

A source is written ``LOCATION[@WEIGHT]``: ``news.txt@3 hf:allenai/c4:fr web.jsonl@0.5``. The weight, 1 by default, says
how often a source is drawn from, relative to the others that still have texts. No source is ever repeated, so without
a limit all of every source is taken and the weights only decide the order; with a limit they decide the proportions.
"""

import math
import random
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from unembed.errors import CorpusError


@dataclass(frozen=True)
class Source:
    """Where texts come from, and how often they are drawn relative to other sources."""

    location: str
    weight: float = 1.0


def parse_source(specification: str | Path) -> Source:
    """Read ``LOCATION[@WEIGHT]``. A file whose own name looks like that is taken as a file.

    Raises:
        CorpusError: the weight is not a positive number.
    """
    written = str(specification)
    location, at, weight_as_written = written.rpartition("@")
    if not at or Path(written).exists():
        return Source(written)
    try:
        weight = float(weight_as_written)
    except ValueError:
        if not Path(location).exists():
            # An @ of the file's own name: let the reader say that there is no such file.
            return Source(written)
        weight = math.nan
    if not (math.isfinite(weight) and weight > 0):
        raise CorpusError(
            f"'{weight_as_written}' is not a weight for {location}.",
            f"Give a positive number after the @, such as {location}@2",
        )
    return Source(location, weight)


def mix(streams: Iterable[tuple[Iterable[str], float]], *, seed: int = 0) -> Iterator[str]:
    """Interleave streams, each given with its weight, by seeded draws among those that still have texts."""
    remaining = [(iter(stream), weight) for stream, weight in streams]
    draws = random.Random(seed)
    while remaining:
        [index] = draws.choices(range(len(remaining)), [weight for _, weight in remaining])
        text = next(remaining[index][0], None)
        if text is None:
            del remaining[index]
        else:
            yield text
