"""Exact de-duplication, whatever the case. Knows nothing of where texts come from or go to."""

from hashlib import blake2b


def fingerprint(text: str, *, key: bytes = b"") -> int:
    """Return a 64-bit fingerprint of a text: the same on every machine, and whatever the case of its letters."""
    folded = text.casefold().encode("utf-8", "surrogatepass")
    return int.from_bytes(blake2b(folded, key=key, digest_size=8).digest(), "big")


class Deduplicator:
    """Remembers the texts it has seen by their fingerprints: some 100 bytes a text, however long the texts are.

    Among a hundred million texts, the chance that any two share a fingerprint is below one in three thousand.
    """

    def __init__(self) -> None:
        self._seen: set[int] = set()

    def is_new(self, text: str) -> bool:
        """Return whether the text is seen for the first time, and remember it."""
        mark = fingerprint(text)
        if mark in self._seen:
            return False
        self._seen.add(mark)
        return True
