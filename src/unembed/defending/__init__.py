"""Defences for a collection of vectors: applied to a copy, undone with the key, and measured against attackers."""

from unembed.defending.copying import DefendedCopy, apply_chain, undo_chain

__all__ = ["DefendedCopy", "apply_chain", "undo_chain"]
