"""BLEU by sacrebleu, of a corpus and of single texts. Imports sacrebleu when it is first used."""

from collections.abc import Sequence
from functools import cache
from typing import Any

import numpy as np

from unembed.errors import require_extra

_ORDERS = 4


@cache
def _scorer() -> Any:
    require_extra("eval", "sacrebleu")
    from sacrebleu.metrics import BLEU

    # ``force``: what looks tokenized to sacrebleu is what a model wrote.
    return BLEU(force=True)


def bleu_signature() -> str:
    """Return how sacrebleu computes it: tokenizer, smoothing, version."""
    bleu_counts("a", "a")  # the number of references is known after a first use
    return str(_scorer().get_signature())


def bleu_counts(recovered: str, reference: str) -> Sequence[float]:
    """Return what corpus BLEU needs of a text: n-grams that match (4), n-grams (4), and both lengths."""
    score = _scorer().corpus_score([recovered], [[reference]])
    return [*score.counts, *score.totals, score.sys_len, score.ref_len]


def bleu_of_counts(sums: np.ndarray) -> np.ndarray:
    """Return corpus BLEU (0 to 100) for each row of summed counts."""
    whole = np.rint(sums).astype(int).tolist()
    return np.array(
        [
            _scorer()
            .compute_bleu(row[:_ORDERS], row[_ORDERS : 2 * _ORDERS], row[-2], row[-1], smooth_method="exp")
            .score
            for row in whole
        ]
    )


def sentence_bleu(recovered: str, reference: str) -> float:
    """Return BLEU (0 to 100) of one text, as vec2text computes it before it takes the mean.

    That is sacrebleu's corpus BLEU of a corpus of one text: 13a tokenizer, case kept, exponential smoothing, all four
    orders. ``sacrebleu.sentence_bleu`` leaves out the orders that a short text does not have, and gives it more: a text
    of three words that came back exactly has 0 here and 100 there.
    """
    return float(_scorer().corpus_score([recovered], [[reference]]).score)
