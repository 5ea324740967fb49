"""How much of a text was recovered, on token ids and on words. Knows nothing of models.

All of these compare a free-running inversion with its reference; teacher-forced accuracy is measured elsewhere and
called ``masked_accuracy``.
"""

import re
from collections import Counter
from collections.abc import Sequence

_WORD = re.compile(r"\w+")


def token_hits(recovered: Sequence[int], reference: Sequence[int]) -> list[bool]:
    """Say for each of the reference's positions whether the recovered text has the same token there."""
    return [place < len(recovered) and recovered[place] == token for place, token in enumerate(reference)]


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


def rouge_l(recovered: str, reference: str) -> float:
    """F1 of the longest common subsequence of words: which words there are, and in which order."""
    ours, theirs = (_WORD.findall(text.lower()) for text in (recovered, reference))
    longest = [0] * (len(theirs) + 1)
    for word in ours:
        diagonal = 0
        for place, other in enumerate(theirs, start=1):
            above = longest[place]
            longest[place] = diagonal + 1 if word == other else max(above, longest[place - 1])
            diagonal = above
    return 2.0 * longest[-1] / max(1, len(ours) + len(theirs))
