"""From texts to the token ids on a canvas. Knows nothing of vectors or files."""

from collections.abc import Sequence

import numpy as np
from tokenizers import Tokenizer

from unembed.canvas.vocabulary import CanvasVocabulary
from unembed.text import well_formed

# A text that still changes after this many rounds of "read, write, read again" is left out.
_ROUNDS = 3


def fit_to_canvas(
    texts: Sequence[str], tokenizer: Tokenizer, length: int
) -> tuple[list[list[int]], list[str], list[int]]:
    """Cut texts to ``length`` tokens, such that reading the cut text again gives exactly those tokens.

    A vector must be the vector of exactly what its tokens say. So the ids are decoded back to text, and that text is
    what will be embedded; reading it must give the same ids. Most texts agree at once, a few after another round.
    Special tokens, unknown characters among them, are dropped first: no text says them.

    Returns:
        The ids, the texts that they say, and which inputs they come from. Inputs that are empty on the canvas or do
        not settle are left out.
    """
    special = set(CanvasVocabulary.of(tokenizer).special)
    pending = list(range(len(texts)))
    reading = [well_formed(text).strip() for text in texts]
    settled: dict[int, tuple[list[int], str]] = {}
    previous: dict[int, list[int]] = {}
    for _ in range(_ROUNDS):
        encodings = tokenizer.encode_batch(reading, add_special_tokens=False)
        cut = [[i for i in encoding.ids if i not in special][:length] for encoding in encodings]
        # A cut through the bytes of one character leaves U+FFFD behind.
        decoded = [text.rstrip("\ufffd").strip() for text in tokenizer.decode_batch(cut)]
        again = []
        for row, encoding, ids, read, text in zip(pending, encodings, cut, reading, decoded, strict=True):
            if previous.get(row) == encoding.ids:
                settled[row] = (ids, read)
            elif text:
                previous[row] = ids
                again.append((row, text))
        pending = [row for row, _ in again]
        reading = [text for _, text in again]
        if not pending:
            break
    rows = sorted(settled)
    return [settled[row][0] for row in rows], [settled[row][1] for row in rows], rows


def count_lost(texts: Sequence[str], tokenizer: Tokenizer) -> tuple[int, int]:
    """Return how many of the texts' tokens no canvas can hold (unknown and special ones), and how many there are."""
    special = set(CanvasVocabulary.of(tokenizer).special)
    encodings = tokenizer.encode_batch([well_formed(text).strip() for text in texts], add_special_tokens=False)
    tokens = [token for encoding in encodings for token in encoding.ids]
    return sum(token in special for token in tokens), len(tokens)


def close_canvas(tokens: np.ndarray, lengths: np.ndarray, vocabulary: CanvasVocabulary) -> np.ndarray:
    """Put [EOS] behind each text that leaves room for it; a text that fills the canvas has none."""
    closed = tokens.copy()
    short = np.flatnonzero(lengths < tokens.shape[1])
    closed[short, lengths[short]] = vocabulary.eos
    return closed
