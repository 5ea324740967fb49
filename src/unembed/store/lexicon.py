"""The words of a store's texts. Knows tokens, no vectors."""

from collections import Counter

import numpy as np

from unembed.canvas.marks import SubwordMarks
from unembed.scripts import UNSPACED, WORD
from unembed.store.reader import Store

RARE = 10
"""A word that occurs less often than this is left out: it is rare, and may be somebody's name."""
_ROWS_AT_ONCE = 1 << 14


def find_words(store: Store, least: int = RARE) -> list[str]:
    """Return the words that occur at least so often in a store's texts, the commonest first.

    Where words are not separated by spaces, as in Chinese, each piece of the tokenizer counts as a word.
    """
    tokenizer, vocabulary = store.tokenizer(), store.manifest.vocabulary
    counts: Counter[str] = Counter()
    of_token = np.zeros(vocabulary.total, dtype=np.int64)
    for start in range(0, len(store), _ROWS_AT_ONCE):
        rows = np.arange(start, min(start + _ROWS_AT_ONCE, len(store)))
        tokens = store.tokens(rows)
        of_token += np.bincount(tokens.ravel(), minlength=vocabulary.total)
        ids = [row[:length] for row, length in zip(tokens.tolist(), store.lengths[rows], strict=True)]
        for text in tokenizer.decode_batch(ids):
            counts.update(WORD.findall(text))
    marks = SubwordMarks.of(tokenizer)
    for token in np.flatnonzero(of_token[: vocabulary.size]).tolist():
        piece = marks.bare(tokenizer.id_to_token(token) or "")
        if UNSPACED.fullmatch(piece):
            counts[piece] += int(of_token[token])
    return sorted((word for word, count in counts.items() if count >= least), key=lambda word: (-counts[word], word))
