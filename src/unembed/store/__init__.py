"""Cached (token ids, vector) pairs: numbered memory-mapped shards and one manifest."""

from unembed.store.canvas import CanvasVocabulary, count_lost, fit_to_canvas, tokenizer_hash
from unembed.store.fingerprint import Fingerprint
from unembed.store.manifest import Manifest, Shard
from unembed.store.reader import Store
from unembed.store.reduction import count_pieces, reduce_vocabulary, respelled_share
from unembed.store.writer import embed_texts

__all__ = [
    "CanvasVocabulary",
    "Fingerprint",
    "Manifest",
    "Shard",
    "Store",
    "count_lost",
    "count_pieces",
    "embed_texts",
    "fit_to_canvas",
    "reduce_vocabulary",
    "respelled_share",
    "tokenizer_hash",
]
