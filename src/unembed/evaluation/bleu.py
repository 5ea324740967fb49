"""Corpus BLEU by sacrebleu, from counts per text. Knows strings only."""

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
    bleu_counts(["a"], ["a"])  # the number of references is known after a first use
    return str(_scorer().get_signature())


def bleu_counts(recovered: Sequence[str], references: Sequence[str]) -> np.ndarray:
    """Return what corpus BLEU needs of each pair: n-grams that match, n-grams, and both lengths: (n, 10)."""
    rows = []
    for ours, theirs in zip(recovered, references, strict=True):
        score = _scorer().corpus_score([ours], [[theirs]])
        rows.append([*score.counts, *score.totals, score.sys_len, score.ref_len])
    return np.array(rows, dtype=np.float64).reshape(len(rows), 2 * _ORDERS + 2)


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
