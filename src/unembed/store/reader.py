"""Reads a store as two long memory-mapped arrays. Knows nothing of encoders or training."""

import sys
from collections import OrderedDict
from pathlib import Path
from typing import Any

import numpy as np
from tokenizers import Tokenizer

from unembed.canvas import tokenizer_hash
from unembed.errors import StoreError, first_line
from unembed.files import checksum
from unembed.store.manifest import TOKENIZER_FILE, Manifest, Shard


class Store:
    """The finished shards of a store, rows numbered through."""

    def __init__(self, folder: Path, *, verify: bool = False) -> None:
        """Open a store; ``verify`` also reads every byte and compares the checksums."""
        self.folder = folder
        self.manifest = Manifest.load(folder)
        if not self.manifest.rows:
            raise StoreError(
                f"The store in {folder} has no finished shard.",
                "Run the same unembed embed command again: it continues where it stopped.",
            )
        self._arrays: OrderedDict[str, np.ndarray] = OrderedDict()
        self._most = _most_arrays()
        self._starts = np.cumsum([0, *(shard.rows for shard in self.manifest.shards)])
        self.lengths = np.concatenate([self._check(shard, verify) for shard in self.manifest.shards])

    def __len__(self) -> int:
        return int(self._starts[-1])

    def __getstate__(self) -> dict[str, Any]:
        """Leave out the mapped arrays: a copy in another process maps them again."""
        return self.__dict__ | {"_arrays": OrderedDict()}

    def tokens(self, rows: np.ndarray) -> np.ndarray:
        """Return the token ids of some rows, padded with the vocabulary's ``pad``: (rows, canvas) int64."""
        taken = np.empty((len(rows), self.manifest.canvas_length), dtype=np.int64)
        for shard, here, indices in self._owners(rows):
            taken[here] = self._tokens(shard)[indices]
        return taken

    def embeddings(self, rows: np.ndarray) -> np.ndarray:
        """Return the vectors of some rows: (rows, dim) float32."""
        taken = np.empty((len(rows), self.manifest.encoder.dim), dtype=np.float32)
        for shard, here, indices in self._owners(rows):
            taken[here] = self._embeddings(shard)[indices]
        return taken

    def tokenizer(self) -> Tokenizer:
        """Return the canvas's tokenizer as it was when the store was made."""
        path = self.folder / TOKENIZER_FILE
        try:
            tokenizer = Tokenizer.from_file(str(path))
        except Exception as error:  # tokenizers raises nothing narrower
            raise StoreError(f"{path} is missing or corrupt: {error}.", _REMEDY) from error
        if tokenizer_hash(tokenizer) != self.manifest.tokenizer_hash:
            raise StoreError(f"{path} is not the tokenizer that the store was made with.", _REMEDY)
        return tokenizer

    def _owners(self, rows: np.ndarray) -> list[tuple[Shard, np.ndarray, np.ndarray]]:
        """Return each shard that holds some of ``rows``: which of them, and their indices within the shard."""
        rows = np.asarray(rows)
        if len(rows) and not (rows.min() >= 0 and rows.max() < len(self)):
            raise IndexError(f"rows must be from 0 to {len(self) - 1}")
        owners = np.searchsorted(self._starts, rows, side="right") - 1
        parts = []
        for owner in np.unique(owners):
            here = np.flatnonzero(owners == owner)
            parts.append((self.manifest.shards[owner], here, rows[here] - self._starts[owner]))
        return parts

    def _check(self, shard: Shard, verify: bool) -> np.ndarray:
        """Open both arrays of a shard, and return the lengths of its texts."""
        if verify:
            for name, expected in shard.checksums.items():
                if self._checksum(name) != expected:
                    raise self._corrupt(name, "its bytes have changed")
        self._embeddings(shard)
        lengths: np.ndarray = (self._tokens(shard) != self.manifest.vocabulary.pad).sum(1)
        return lengths

    def _checksum(self, name: str) -> str:
        try:
            return checksum(self.folder / name)
        except OSError as error:
            raise self._corrupt(name, str(error)) from error

    def _tokens(self, shard: Shard) -> np.ndarray:
        return self._map(shard.tokens_file, (shard.rows, self.manifest.canvas_length), self.manifest.tokens_dtype)

    def _embeddings(self, shard: Shard) -> np.ndarray:
        return self._map(shard.embeddings_file, (shard.rows, self.manifest.encoder.dim), self.manifest.embeddings_dtype)

    def _map(self, name: str, shape: tuple[int, int], dtype: str) -> np.ndarray:
        """Return a mapped array; the one that was used longest ago makes room for it."""
        if name in self._arrays:
            self._arrays.move_to_end(name)
            return self._arrays[name]
        try:
            array: np.ndarray = np.load(self.folder / name, mmap_mode="r", allow_pickle=False)
        # Damage to a header comes out as whatever numpy's parser stumbles over.
        except Exception as error:
            raise self._corrupt(name, first_line(error)) from error
        if (array.shape, array.dtype) != (shape, np.dtype(dtype)) or not array.flags.c_contiguous:
            raise self._corrupt(name, f"it holds {array.dtype} {array.shape}, expected {dtype} {shape}")
        self._arrays[name] = array
        if len(self._arrays) > self._most:
            self._arrays.popitem(last=False)
        return array

    def _corrupt(self, name: str, why: str) -> StoreError:
        return StoreError(f"The shard {self.folder / name} is missing or corrupt: {why}.", _REMEDY)


def _most_arrays() -> int:
    """Return how many arrays stay mapped: each holds a file open, and others need half of what a process may hold."""
    if sys.platform == "win32":
        return 160
    import resource

    allowed, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return 4096 if allowed == resource.RLIM_INFINITY else min(allowed // 2, 4096)


_REMEDY = "Run the same unembed embed command again: it checks every file and makes the damaged ones again."
