"""Counts which tokens follow which in the texts of a store."""

from collections.abc import Iterator

import numpy as np

from unembed.model import NGrams
from unembed.store import Store

# More texts would take more memory, and hardly change the figures.
_MOST_TEXTS = 5_000_000
_AT_ONCE = 1 << 18


def count_ngrams(store: Store) -> NGrams:
    """Return the n-grams of a store's texts; of a very large one, of its first millions."""
    count = min(len(store), _MOST_TEXTS)

    def read() -> Iterator[tuple[np.ndarray, np.ndarray]]:
        for start in range(0, count, _AT_ONCE):
            rows = np.arange(start, min(start + _AT_ONCE, count))
            yield store.tokens(rows), store.lengths[rows]

    return NGrams.count(read, store.manifest.vocabulary.size)
