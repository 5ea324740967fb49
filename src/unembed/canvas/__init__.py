"""A canvas: which token ids it may hold, and how texts are fitted to it."""

from unembed.canvas.fitting import close_canvas, count_lost, fit_to_canvas
from unembed.canvas.reduction import count_pieces, reduce_vocabulary, respelled_share
from unembed.canvas.round_trip import RoundTrip, fit_text
from unembed.canvas.vocabulary import CanvasVocabulary, tokenizer_hash

__all__ = [
    "CanvasVocabulary",
    "RoundTrip",
    "close_canvas",
    "count_lost",
    "count_pieces",
    "fit_text",
    "fit_to_canvas",
    "reduce_vocabulary",
    "respelled_share",
    "tokenizer_hash",
]
