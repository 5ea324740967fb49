"""One form of address for every store: ``chroma:./db#collection``. Knows which connector opens which."""

import re
from collections.abc import Callable
from importlib import import_module
from pathlib import Path

from unembed.connectors.chroma import DATABASE
from unembed.connectors.files import read_vectors
from unembed.connectors.source import VectorSource
from unembed.errors import VectorError, did_you_mean

Opener = Callable[[str, str | None, str | None, int], VectorSource]
"""Where it lies, the part behind ``#``, the column, and how many rows a batch has."""

# Imported when they are used: each needs a library of its own.
_OPENERS = {
    "chroma": "unembed.connectors.chroma:read_chroma",
    "qdrant": "unembed.connectors.qdrant:read_qdrant",
    "faiss": "unembed.connectors.faiss:read_faiss",
    "lancedb": "unembed.connectors.lancedb:read_lancedb",
    "pgvector": "unembed.connectors.postgres:read_postgres",
}
_FILES = ("npy", "npz", "parquet", "csv", "tsv", "jsonl")
_SCHEME = re.compile(rf"({'|'.join([*_OPENERS, *_FILES])}):(\S.*)", re.DOTALL)
# What is meant as an address, whether or not there is such a kind of store: no sentence looks like this.
_ADDRESS = re.compile(r"(?P<scheme>[a-z]{2,}):(?!//)\S+#\S+")


def is_store_uri(name: str) -> bool:
    """Whether a name is meant as the address of a store, be there such a store or not."""
    return bool(_SCHEME.fullmatch(name) or _ADDRESS.fullmatch(name))


def open_vectors(uri: str, *, column: str | None = None, batch_rows: int = 1024) -> VectorSource:
    """Open a store of vectors for reading; nothing is ever written to it.

    Args:
        uri: ``chroma:FOLDER#collection``, ``qdrant:FOLDER#collection``, ``qdrant:http://HOST:6333#collection``,
            ``faiss:FILE``, ``lancedb:FOLDER#table``, ``pgvector:postgresql://...#table.column``, ``npy:FILE`` and so
            on, or the path of a file of vectors. Where there is one collection or table only, it need not be named.
        column: the field, column or named vector that holds the vectors, where there are several.
        batch_rows: vectors per batch.

    Raises:
        VectorError: the store cannot be read, with what to do about it.
        MissingExtraError: the library that reads such a store is not installed.
    """
    found = _SCHEME.fullmatch(uri)
    if found is None:
        return _open_path(uri, column, batch_rows)
    scheme, place = found.groups()
    if scheme in _FILES:
        return read_vectors(place, column=column, batch_rows=batch_rows)
    place, _, part = place.partition("#")
    module, name = _OPENERS[scheme].split(":")
    opener: Opener = getattr(import_module(module), name)
    return opener(place, part or None, column, batch_rows)


def _open_path(name: str, column: str | None, batch_rows: int) -> VectorSource:
    path = Path(name)
    scheme = name.partition(":")[0]
    if ":" in name and len(scheme) > 1 and not path.exists():  # one letter is a drive of Windows
        kinds = [*_OPENERS, *_FILES]
        raise VectorError(
            f"There is no file {name}, and no kind of store '{scheme}': {did_you_mean(scheme, kinds)}",
            "Check the address.",
        )
    if path.is_dir():
        known = "chroma" if (path / DATABASE).is_file() else "qdrant" if (path / "meta.json").is_file() else None
        raise VectorError(
            f"{name} is a folder.",
            f"It looks like a store: {known}:{name}#COLLECTION"
            if known
            else f"Say what it is: {', '.join(f'{scheme}:' for scheme in _OPENERS)} before the path.",
        )
    if path.suffix in (".faiss", ".index"):
        return open_vectors(f"faiss:{name}", column=column, batch_rows=batch_rows)
    return read_vectors(path, column=column, batch_rows=batch_rows)
