"""Cached (token ids, vector) pairs: numbered memory-mapped shards and one manifest."""

from unembed.store.fingerprint import Fingerprint
from unembed.store.lexicon import find_words
from unembed.store.manifest import Manifest, Shard
from unembed.store.reader import Store
from unembed.store.writer import embed_texts

__all__ = ["Fingerprint", "Manifest", "Shard", "Store", "embed_texts", "find_words"]
