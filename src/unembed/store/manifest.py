"""What a store holds and for whom it was made: ``manifest.json``. Knows nothing of how shards are filled."""

import json
from pathlib import Path
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, ValidationError

from unembed.encoders import EncoderDescription
from unembed.errors import StoreError
from unembed.files import write_json
from unembed.store.canvas import CanvasVocabulary

FILE = "manifest.json"
TOKENIZER_FILE = "tokenizer.json"


class Shard(BaseModel):
    """One numbered pair of arrays. It exists once the manifest lists it, and not before."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    number: int
    rows: int
    lines: int
    """Source lines that it covers; more than ``rows`` where some were left out."""
    tokens_checksum: str
    embeddings_checksum: str

    @property
    def tokens_file(self) -> str:
        """Name of the token array."""
        return f"tokens-{self.number:05d}.npy"

    @property
    def embeddings_file(self) -> str:
        """Name of the embedding array."""
        return f"embeddings-{self.number:05d}.npy"


class Manifest(BaseModel):
    """The store's description and the list of its finished shards."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    format: Literal[1] = 1
    encoder: EncoderDescription
    tokenizer_hash: str
    vocabulary_size: int
    special_ids: tuple[int, ...]
    canvas_length: int
    tokens_dtype: str
    embeddings_dtype: str = "float16"
    source_hash: str
    shard_lines: int
    complete: bool = False
    shards: tuple[Shard, ...] = ()

    @property
    def rows(self) -> int:
        """Pairs in the finished shards."""
        return sum(shard.rows for shard in self.shards)

    @property
    def lines(self) -> int:
        """Source lines that the finished shards cover."""
        return sum(shard.lines for shard in self.shards)

    @property
    def vocabulary(self) -> CanvasVocabulary:
        """The ids that may stand on a canvas of this store."""
        return CanvasVocabulary(self.vocabulary_size, self.special_ids)

    def identity(self) -> dict[str, Any]:
        """All that must agree for shards to belong to one store."""
        return self.model_dump(mode="json", exclude={"shards", "complete"})

    def save(self, folder: Path) -> None:
        """Write ``manifest.json``: the one point at which a shard becomes part of the store."""
        write_json(folder / FILE, self.model_dump(mode="json"))

    @classmethod
    def load(cls, folder: Path) -> "Manifest":
        """Read ``manifest.json``, or say why it cannot be read."""
        path = folder / FILE
        if not path.is_file():
            raise StoreError(f"There is no store in {folder}.", f"Make one: unembed embed CORPUS --output {folder}")
        try:
            return cls.model_validate(json.loads(path.read_text(encoding="utf-8")))
        except (ValidationError, ValueError) as error:
            raise StoreError(
                f"{path} is not a manifest of this version: {str(error).splitlines()[0]}",
                f"Remove {folder} and run unembed embed again.",
            ) from error
