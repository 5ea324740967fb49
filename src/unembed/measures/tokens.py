"""Measures on token ids. They need neither the texts nor the encoder."""

from collections import Counter
from collections.abc import Sequence


def token_hits(recovered: Sequence[int], reference: Sequence[int]) -> list[bool]:
    """Say for each of the reference's positions whether the recovered text has the same token there."""
    return [position < len(recovered) and recovered[position] == token for position, token in enumerate(reference)]


def token_accuracy(recovered: Sequence[int], reference: Sequence[int]) -> float:
    """Share of the reference's positions at which the recovered text has the same token."""
    return sum(token_hits(recovered, reference)) / max(1, len(reference))


def token_f1(recovered: Sequence[int], reference: Sequence[int]) -> float:
    """F1 of the two bags of tokens."""
    common = sum((Counter(recovered) & Counter(reference)).values())
    return 2.0 * common / max(1, len(recovered) + len(reference))


def exact_match(recovered: Sequence[int], reference: Sequence[int]) -> float:
    """1 when all tokens are equal, else 0."""
    return float(list(recovered) == list(reference))
