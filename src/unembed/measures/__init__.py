"""How much of a text was recovered. Knows nothing of models."""

from unembed.measures.bleu import bleu_signature
from unembed.measures.content import (
    PASSAGE_WORDS,
    READABLE_FROM,
    best_passage,
    content_words,
    function_words,
    is_grammar,
    stem,
)
from unembed.measures.table import (
    BY_NAME,
    CONTENT_MEASURES,
    MEASURES,
    READABLE,
    Format,
    Forms,
    Measure,
    compare,
    compare_one,
    percent,
)
from unembed.measures.tokens import exact_match, token_accuracy, token_f1, token_hits
from unembed.measures.vectors import cosine
from unembed.measures.words import rouge_l, word_set_f1

__all__ = [
    "BY_NAME",
    "CONTENT_MEASURES",
    "MEASURES",
    "PASSAGE_WORDS",
    "READABLE",
    "READABLE_FROM",
    "Format",
    "Forms",
    "Measure",
    "best_passage",
    "bleu_signature",
    "compare",
    "compare_one",
    "content_words",
    "cosine",
    "exact_match",
    "function_words",
    "is_grammar",
    "percent",
    "rouge_l",
    "stem",
    "token_accuracy",
    "token_f1",
    "token_hits",
    "word_set_f1",
]
