"""How much of a text was recovered. Knows nothing of models."""

from unembed.measures.bleu import bleu_signature
from unembed.measures.came_back import Fate, WordFate, fate_of, fates
from unembed.measures.content import (
    PASSAGE_WORDS,
    READABLE_FROM,
    all_words,
    best_passage,
    content_words,
    function_words,
    is_grammar,
    spoken_words,
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
    "Fate",
    "Format",
    "Forms",
    "Measure",
    "WordFate",
    "all_words",
    "best_passage",
    "bleu_signature",
    "compare",
    "compare_one",
    "content_words",
    "cosine",
    "exact_match",
    "fate_of",
    "fates",
    "function_words",
    "is_grammar",
    "percent",
    "rouge_l",
    "spoken_words",
    "stem",
    "token_accuracy",
    "token_f1",
    "token_hits",
    "word_set_f1",
]
