"""How much of a text was recovered. Knows nothing of models."""

from unembed.measures.bleu import bleu_signature
from unembed.measures.table import (
    BY_NAME,
    MEASURES,
    READABLE,
    Format,
    Forms,
    Measure,
    compare,
    compare_one,
    percent,
)
from unembed.measures.tokens import READABLE_FROM, exact_match, token_accuracy, token_f1, token_hits
from unembed.measures.vectors import cosine
from unembed.measures.words import rouge_l, word_set_f1

__all__ = [
    "BY_NAME",
    "MEASURES",
    "READABLE",
    "READABLE_FROM",
    "Format",
    "Forms",
    "Measure",
    "bleu_signature",
    "compare",
    "compare_one",
    "cosine",
    "exact_match",
    "percent",
    "rouge_l",
    "token_accuracy",
    "token_f1",
    "token_hits",
    "word_set_f1",
]
