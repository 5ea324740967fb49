"""Vectors of a Chroma folder. Chroma writes to whatever it opens, so it is given a copy and never the original."""

import json
import shutil
import sqlite3
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from uuid import UUID

import numpy as np

from unembed.connectors.source import DAMAGED, Columns, StorageInfo, VectorBatch, VectorSource, choose_part, fingerprint
from unembed.errors import VectorError, first_line, require_extra

DATABASE = "chroma.sqlite3"
# Parts of the database that are not yet, or no longer, in its main file.
_JOURNALS = ("-wal", "-journal")
_DEFAULT_ENCODER = "all-MiniLM-L6-v2"
_TRIES = 3


@dataclass(frozen=True)
class _Collection:
    name: str
    rows: int
    segments: list[str]
    """The folders next to the database that hold its vectors."""
    settings: dict[str, Any]
    metadata: dict[str, Any]


def read_chroma(location: str, part: str | None, columns: Columns, batch_rows: int) -> VectorSource:
    """Open a collection of a persistent Chroma folder.

    The database and the collection's index are copied to the temporary folder first, as much as this collection takes;
    Chroma loads the index into memory, as it always does.
    """
    require_extra("chroma", "chromadb")
    folder = Path(location)
    where = f"chroma:{location}"
    columns.refuse_vectors("A Chroma collection has one vector per row.")
    if not (folder / DATABASE).is_file():
        raise VectorError(f"There is no Chroma database in {location}: it has no {DATABASE}.", "Check the path.")
    copy = tempfile.TemporaryDirectory(prefix="unembed-chroma-", ignore_cleanup_errors=True)
    collection = _copy(folder, Path(copy.name), part, where)
    name = f"{where}#{collection.name}"
    records = _read(copy, collection, columns, name, batch_rows)
    return VectorSource(name, collection.rows, records, unit="id", storage=_storage_info(collection))


def _copy(folder: Path, copy: Path, part: str | None, where: str) -> _Collection:
    """Copy what a collection needs, in a consistent state, and describe it."""
    for _ in range(_TRIES):
        before = fingerprint([folder])
        try:
            for suffix in ("", *_JOURNALS):
                if (source := folder / f"{DATABASE}{suffix}").is_file():
                    shutil.copyfile(source, copy / source.name)
            collection = _describe(copy / DATABASE, part, where)
            for segment in collection.segments:
                if (folder / segment).is_dir():
                    shutil.copytree(folder / segment, copy / segment, dirs_exist_ok=True)
        except (OSError, shutil.Error) as error:
            raise VectorError(
                f"{where} cannot be copied to {copy.parent}: {first_line(error)}.",
                "Chroma writes to what it opens, so a copy is read. Make room there, or set TMPDIR to another folder.",
            ) from error
        except (
            sqlite3.Error,
            ValueError,
            TypeError,
            AttributeError,
        ) as error:  # also of settings that are no JSON object
            if fingerprint([folder]) == before:
                raise VectorError(
                    f"{where} cannot be read: {first_line(error)}.", f"{DATABASE} is damaged: restore it from a backup."
                ) from error
            continue
        if fingerprint([folder]) == before:
            return collection
    raise VectorError(f"{where} changed while it was read.", "Stop what writes to it, or give a copy, and run again.")


def _describe(database: Path, part: str | None, where: str) -> _Collection:
    connection = sqlite3.connect(database)
    try:
        names = dict(connection.execute("SELECT name, id FROM collections").fetchall())
        name = choose_part(part, list(names), "collection", where)
        identifier = names[name]
        columns = {row[1] for row in connection.execute("PRAGMA table_info(collections)")}
        settings: dict[str, Any] = {}
        for field in ("config_json_str", "schema_str"):  # what newer versions write wins
            if field in columns:
                query = f"SELECT {field} FROM collections WHERE id = ?"
                settings |= json.loads(connection.execute(query, (identifier,)).fetchone()[0] or "{}")
        metadata = connection.execute(
            "SELECT key, str_value FROM collection_metadata WHERE collection_id = ? AND str_value IS NOT NULL",
            (identifier,),
        ).fetchall()
        segments = connection.execute("SELECT id, scope FROM segments WHERE collection = ?", (identifier,)).fetchall()
        for segment, _ in segments:
            UUID(segment)  # any other name could be a path, to which its files would be copied
        rows = sum(
            connection.execute("SELECT count(*) FROM embeddings WHERE segment_id = ?", (segment,)).fetchone()[0]
            for segment, scope in segments
            if scope == "METADATA"
        )
    finally:
        connection.close()
    return _Collection(
        name, rows, [segment for segment, scope in segments if scope == "VECTOR"], settings, dict(metadata)
    )


def _section(settings: dict[str, Any], *keys: str) -> dict[str, Any]:
    """Return a nested part of some settings; an empty one where it is missing or not an object."""
    part: Any = settings
    for key in keys:
        part = part.get(key) if isinstance(part, dict) else None
    return part if isinstance(part, dict) else {}


def _storage_info(collection: _Collection) -> StorageInfo:
    settings = collection.settings
    # Since version 1.3 a schema holds what a flat configuration held before.
    config = _section(settings, "keys", "#embedding", "float_list", "vector_index", "config") or settings
    function = _section(config, "embedding_function")
    name, options = function.get("name"), _section(function, "config")
    encoder = _DEFAULT_ENCODER if name == "default" else options.get("model_name") or options.get("model") or name
    distance = config.get("space") or _section(config, "hnsw").get("space") or collection.metadata.get("hnsw:space")
    return StorageInfo(
        "Chroma collection",
        precision="float32",
        distance=distance or "l2",
        encoder=encoder,
        encoder_said_by=f"the collection's embedding function ('{name}')" if name else "",
    )


def _read(
    copy: "tempfile.TemporaryDirectory[str]", collection: _Collection, columns: Columns, name: str, batch_rows: int
) -> Iterator[VectorBatch]:
    import chromadb

    with copy as folder:
        settings = chromadb.Settings(anonymized_telemetry=False)
        try:
            client = chromadb.PersistentClient(folder, settings=settings)
        except Exception as error:  # whatever its native part makes of a damaged file
            raise VectorError(f"Chroma cannot open {name}: {first_line(error)}.", DAMAGED) from error
        try:
            # Without the embedding function: it may want a key or a download, and nothing is embedded here.
            chosen = client.get_collection(collection.name, embedding_function=None)
            for ids in _ids(Path(folder) / DATABASE, collection, batch_rows):
                rows = chosen.get(ids=ids, include=["embeddings", "documents", "metadatas"])  # type: ignore[list-item]
                names = _metadata(rows, columns.ids, rows["ids"])
                texts = _metadata(rows, columns.texts, rows["documents"])
                yield VectorBatch(names, np.asarray(rows["embeddings"]), texts)
        except chromadb.errors.ChromaError as error:
            raise VectorError(f"Chroma cannot read {name}: {first_line(error)}.", DAMAGED) from error
        finally:
            client.close()


def _metadata(rows: Any, key: str | None, otherwise: Any) -> Any:
    """Return the field that the user names of the rows' metadata; where there is none, what rows have otherwise."""
    if key is None:
        return otherwise
    found = [(metadata or {}).get(key) for metadata in rows["metadatas"]]
    return [other if value is None else str(value) for value, other in zip(found, otherwise, strict=True)]


def _ids(database: Path, collection: _Collection, batch_rows: int) -> Iterator[list[str]]:
    """Yield all ids by themselves: Chroma's own paging counts from the first row each time."""
    connection = sqlite3.connect(f"file:{database}?mode=ro", uri=True)
    query = (
        "SELECT e.id, e.embedding_id FROM embeddings e JOIN segments s ON s.id = e.segment_id "
        "JOIN collections c ON c.id = s.collection WHERE c.name = ? AND e.id > ? ORDER BY e.id LIMIT ?"
    )
    try:
        last = -1
        while rows := connection.execute(query, (collection.name, last, batch_rows)).fetchall():
            last = rows[-1][0]
            yield [identifier for _, identifier in rows]
    finally:
        connection.close()
