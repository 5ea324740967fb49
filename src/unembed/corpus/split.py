"""Which texts train and which validate. Knows nothing of files.

A text's side depends only on the text and the seed, not on its position or on the other texts. A text that once
validated never trains, whatever is added to the corpus.
"""

from collections.abc import Iterable, Iterator

from unembed.corpus.deduplicate import fingerprint


def position(text: str, *, seed: int | str = 0) -> float:
    """Return a number in [0, 1) that depends on the text (whatever its case) and the seed only."""
    # A float holds 53 of the 64 bits; dividing all of them could round up to 1.
    return (fingerprint(text, key=str(seed).encode()[:64]) >> 11) / (1 << 53)


def split(texts: Iterable[str], *, validation_share: float = 0.01, seed: int = 0) -> Iterator[tuple[str, bool]]:
    """Yield each text with whether it validates: those whose position is below the share do.

    One exception, for tiny corpora: the text with the smallest position of all validates even when that position is not
    below the share, so that there is one at least. It is known only at the end, so the smallest so far is held
    back and comes later than it was read; all others keep their order. A single text trains.
    """
    smallest: tuple[float, str] | None = None
    is_alone = True
    for text in texts:
        current = (position(text, seed=seed), text)
        if smallest is None:
            smallest = current
            continue
        is_alone = False
        smallest, other = min(smallest, current), max(smallest, current)
        yield other[1], other[0] < validation_share
    if smallest is not None:
        yield smallest[1], validation_share > 0 and not is_alone
