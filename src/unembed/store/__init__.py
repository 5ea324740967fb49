"""Cached (token ids, vector) pairs: numbered memory-mapped shards and one manifest."""

from unembed.store.canvas import CanvasVocabulary, fit_to_canvas, tokenizer_hash
from unembed.store.manifest import Manifest, Shard
from unembed.store.reader import Store
from unembed.store.writer import embed_texts

__all__ = ["CanvasVocabulary", "Manifest", "Shard", "Store", "embed_texts", "fit_to_canvas", "tokenizer_hash"]
