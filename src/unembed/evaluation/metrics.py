"""How much of a text was recovered, on token ids. Knows nothing of models.

All of these compare a free-running inversion with its reference; teacher-forced accuracy is measured elsewhere and
called ``masked_accuracy``.
"""

from collections import Counter
from collections.abc import Sequence


def token_accuracy(recovered: Sequence[int], reference: Sequence[int]) -> float:
    """Share of the reference's positions at which the recovered text has the same token."""
    hits = sum(ours == theirs for ours, theirs in zip(recovered, reference, strict=False))
    return hits / max(1, len(reference))


def token_f1(recovered: Sequence[int], reference: Sequence[int]) -> float:
    """F1 of the two bags of tokens."""
    common = sum((Counter(recovered) & Counter(reference)).values())
    return 2.0 * common / max(1, len(recovered) + len(reference))


def exact_match(recovered: Sequence[int], reference: Sequence[int]) -> float:
    """1 when all tokens are equal, else 0."""
    return float(list(recovered) == list(reference))
