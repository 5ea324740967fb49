"""Reads a store as two long memory-mapped arrays. Knows nothing of encoders or training."""

from pathlib import Path

import numpy as np
from tokenizers import Tokenizer

from unembed.errors import StoreError
from unembed.files import checksum
from unembed.store.manifest import TOKENIZER_FILE, Manifest


class Store:
    """The finished shards of a store, rows numbered through."""

    def __init__(self, folder: Path, *, verify: bool = False) -> None:
        """Open a store; ``verify`` also reads every byte and compares the checksums."""
        self.folder = folder
        self.manifest = Manifest.load(folder)
        if not self.manifest.rows:
            raise StoreError(f"The store in {folder} has no finished shard.", "Let unembed embed run on.")
        self._tokens: list[np.ndarray] = []
        self._embeddings: list[np.ndarray] = []
        for shard in self.manifest.shards:
            for name, expected in (
                (shard.tokens_file, shard.tokens_checksum),
                (shard.embeddings_file, shard.embeddings_checksum),
            ):
                if verify and (folder / name).is_file() and checksum(folder / name) != expected:
                    raise self._corrupt(name, "its bytes have changed")
            self._tokens.append(self._open(shard.tokens_file, (shard.rows, self.manifest.canvas_length)))
            self._embeddings.append(self._open(shard.embeddings_file, (shard.rows, self.manifest.encoder.dim)))
        self._starts = np.cumsum([0, *(shard.rows for shard in self.manifest.shards)])
        self.lengths = np.concatenate([(part != self.manifest.vocabulary.pad).sum(1) for part in self._tokens])

    def __len__(self) -> int:
        return int(self._starts[-1])

    def tokens(self, rows: np.ndarray) -> np.ndarray:
        """Return the token ids of some rows, padded with the vocabulary's ``pad``: (rows, canvas) int64."""
        return self._take(self._tokens, rows).astype(np.int64)

    def embeddings(self, rows: np.ndarray) -> np.ndarray:
        """Return the vectors of some rows: (rows, dim) float32."""
        return self._take(self._embeddings, rows).astype(np.float32)

    def tokenizer(self) -> Tokenizer:
        """Return the encoder's tokenizer as it was when the store was made."""
        path = self.folder / TOKENIZER_FILE
        if not path.is_file():
            raise StoreError(f"{path} is missing.", "Run unembed embed again into the same folder.")
        return Tokenizer.from_file(str(path))

    def _take(self, parts: list[np.ndarray], rows: np.ndarray) -> np.ndarray:
        rows = np.asarray(rows)
        taken = np.empty((len(rows), parts[0].shape[1]), dtype=parts[0].dtype)
        owners = np.searchsorted(self._starts, rows, side="right") - 1
        for owner in np.unique(owners):
            here = owners == owner
            taken[here] = parts[owner][rows[here] - self._starts[owner]]
        return taken

    def _open(self, name: str, shape: tuple[int, int]) -> np.ndarray:
        try:
            array = np.load(self.folder / name, mmap_mode="r", allow_pickle=False)
        except (OSError, ValueError, EOFError) as error:
            raise self._corrupt(name, str(error).splitlines()[0] or "it cannot be read") from error
        if array.shape != shape:
            raise self._corrupt(name, f"its shape is {array.shape}, expected {shape}")
        return np.asarray(array) if array.size == 0 else array

    def _corrupt(self, name: str, why: str) -> StoreError:
        return StoreError(
            f"The shard {self.folder / name} is missing or corrupt: {why}.",
            "Run the same unembed embed command again: it checks every shard and makes the damaged ones anew.",
        )
