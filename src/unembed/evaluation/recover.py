"""Runs an inverter over vectors and keeps what the measures need. Knows steps, no references."""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import numpy as np

from unembed.config import DecodingConfig
from unembed.encoders import Encoder
from unembed.inverter import Inverter

BATCH_SIZE = 64


@dataclass(frozen=True)
class Waypoint:
    """A hypothesis without masks that a search had at some time."""

    encoder_calls: int
    """Texts embedded for it so far; 0 for a blind first hypothesis."""
    score: float
    ids: list[int]


@dataclass(frozen=True)
class Recovered:
    """What was made of each of n vectors."""

    ids: list[list[int]]
    passes: list[int]
    encoder_calls: list[int]
    ways: list[list[Waypoint]] = field(default_factory=list)
    """Of searches only."""
    seconds: float = 0.0
    """Wall time for all of them."""

    @classmethod
    def without_model(cls, ids: list[list[int]]) -> "Recovered":
        """Return texts that took no passes, as those of a baseline."""
        return cls(ids, [0] * len(ids), [0] * len(ids))


def recover(
    inverter: Inverter,
    vectors: np.ndarray,
    options: DecodingConfig,
    *,
    encoder: Encoder,
    lengths: Sequence[int] | None = None,
    batch_size: int = BATCH_SIZE,
    on_finished: Callable[[int], None] = lambda count: None,
) -> Recovered:
    """Invert every vector.

    Args:
        inverter: what inverts.
        vectors: (n, d).
        options: how.
        encoder: for what asks it; blind decoding never sees it.
        lengths: of the texts, where the protocol makes them known.
        batch_size: hypotheses decoded together.
        on_finished: called after each step with how many more vectors are finished.
    """
    searches, vocabulary = options.searches, inverter.info.vocabulary
    ids: list[list[int]] = [[] for _ in vectors]
    passes, calls = [0] * len(vectors), [0] * len(vectors)
    ways: list[list[Waypoint]] = [[] for _ in vectors] if searches else []
    begun = time.perf_counter()
    for step in inverter.decode(
        vectors, options, lengths=lengths, encoder=encoder if options.needs_encoder else None, batch_size=batch_size
    ):
        finished = step.finished(vocabulary)
        for text in finished:
            ids[text.row], passes[text.row] = text.ids, text.passes
            calls[text.row] = text.texts_embedded if options.needs_encoder else 0
        if searches:
            for text in step.complete(vocabulary):
                ways[text.row].append(Waypoint(text.texts_embedded, text.score, text.ids))
        on_finished(len(finished))
    return Recovered(ids, passes, calls, ways, time.perf_counter() - begun)
