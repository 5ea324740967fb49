"""Secret sentences that are put into a store to see whether they come back. Knows no vectors."""

from dataclasses import dataclass
from hashlib import blake2b

import numpy as np

from unembed.lists import load_lines


@dataclass(frozen=True)
class Canary:
    """A made-up sentence, and the word in it that nobody should learn."""

    text: str
    secret: str


def make_canaries(pairs: int, purpose: str, seed: int) -> list[Canary]:
    """Make pairs of sentences that differ in their secret alone, others for each ``purpose``."""
    digest = blake2b(purpose.encode(), digest_size=8).digest()
    random = np.random.default_rng([seed, int.from_bytes(digest)])
    names, places, conditions = (load_lines(name) for name in ("first-names", "places", "medical"))
    canaries = []
    for _ in range(pairs):
        name, place = names[random.integers(len(names))], places[random.integers(len(places))]
        for secret in random.choice(conditions, 2, replace=False).tolist():
            canaries.append(Canary(f"{name.capitalize()} from {place.capitalize()} was treated for {secret}.", secret))
    return canaries
