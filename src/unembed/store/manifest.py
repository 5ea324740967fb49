"""What a store holds and for whom it was made: ``manifest.json``. Knows nothing of how shards are filled."""

import json
from pathlib import Path
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, ValidationError

from unembed.canvas import CanvasVocabulary
from unembed.encoders import EncoderDescription
from unembed.errors import StoreError, first_line, from_os_error
from unembed.files import write_json
from unembed.store.fingerprint import Fingerprint

FILE = "manifest.json"
TOKENIZER_FILE = "tokenizer.json"


class Shard(BaseModel):
    """One numbered pair of arrays. It is part of the store once the manifest lists it."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    number: int
    rows: int
    lines: int
    """Source lines that it covers; more than ``rows`` where some were left out."""
    tokens_checksum: str
    embeddings_checksum: str
    tokens: int = 0
    """Tokens of its source lines, before they were cut to the canvas."""
    lost_tokens: int = 0
    """Those among them that no canvas can hold: unknown characters and special tokens."""

    @property
    def tokens_file(self) -> str:
        """Name of the token array."""
        return f"tokens-{self.number:05d}.npy"

    @property
    def embeddings_file(self) -> str:
        """Name of the embedding array."""
        return f"embeddings-{self.number:05d}.npy"

    @property
    def checksums(self) -> dict[str, str]:
        """What the bytes of each of its files must add up to."""
        return {self.tokens_file: self.tokens_checksum, self.embeddings_file: self.embeddings_checksum}


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
    respelled_share: float | None = None
    """Of a reduced vocabulary: the share of the tokens that had to be spelled with smaller pieces."""
    complete: bool = False
    fingerprint: Fingerprint | None = None
    """What the vectors look like; None until the store is complete, and in stores of earlier versions."""
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
    def lost_share(self) -> float:
        """Share of the source's tokens that no canvas can hold."""
        return sum(shard.lost_tokens for shard in self.shards) / max(1, sum(shard.tokens for shard in self.shards))

    @property
    def vocabulary(self) -> CanvasVocabulary:
        """The ids that may stand on a canvas of this store."""
        return CanvasVocabulary(self.vocabulary_size, self.special_ids)

    def differences(self, other: "Manifest") -> list[str]:
        """Return why the shards of two manifests cannot belong to one store; empty if they can."""
        ours, theirs = (_facts(manifest) for manifest in (self, other))
        differing = [f"{name} {ours[name]!r}, not {theirs[name]!r}" for name in ours if ours[name] != theirs[name]]
        if self.source_hash != other.source_hash:
            differing.append("another source text")
        # Differences that only follow from another tokenizer are not listed.
        if self.tokenizer_hash != other.tokenizer_hash:
            return [*differing, "another tokenizer"]
        derived = ("vocabulary_size", "special_ids", "tokens_dtype", "embeddings_dtype")
        return differing + [
            f"other {key.replace('_', ' ')}" for key in derived if getattr(self, key) != getattr(other, key)
        ]

    def save(self, folder: Path) -> None:
        """Write ``manifest.json``: the one point at which a shard becomes part of the store."""
        write_json(folder / FILE, self.model_dump(mode="json"))

    @classmethod
    def load(cls, folder: Path) -> "Manifest":
        """Read ``manifest.json``, or say why it cannot be read."""
        path = folder / FILE
        if not path.is_file():
            remedy = f"Make one: unembed embed FILE.txt --output {folder}"
            if folder.name in ("train", "validation"):
                remedy += f", or both splits of a prepared corpus: unembed embed CORPUS --output {folder.parent}"
            raise StoreError(f"There is no store in {folder}.", remedy)
        try:
            return cls.model_validate(json.loads(path.read_text(encoding="utf-8")))
        except (ValidationError, ValueError) as error:
            raise StoreError(
                f"{path} is not a manifest of this version: {first_line(error)}",
                f"Remove {folder} and run unembed embed again.",
            ) from error
        except OSError as error:
            raise from_os_error(error, f"reading {path}") from error


def _facts(manifest: Manifest) -> dict[str, Any]:
    encoder = {f"encoder {key}": value for key, value in manifest.encoder.model_dump().items()}
    return encoder | {"canvas length": manifest.canvas_length, "lines per shard": manifest.shard_lines}
