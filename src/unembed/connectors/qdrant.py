"""Vectors of a Qdrant collection: of a server, or of the folder that the Python client keeps without one.

The client takes a lock in such a folder and unpickles what lies there. So the folder is read here, without it: SQLite
is opened as an immutable file, and only plain values are taken from a pickle.
"""

import io
import json
import os
import pickle
import sqlite3
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from unembed.connectors.source import (
    DAMAGED,
    Columns,
    Row,
    StorageInfo,
    VectorBatch,
    VectorSource,
    choose_part,
    choose_text,
    gather,
    show_id,
    unchanged,
)
from unembed.connectors.uri import mask_passwords
from unembed.errors import VectorError, first_line, require_extra
from unembed.hosts import LOOPBACK

_META = "meta.json"
_KEY = "QDRANT_API_KEY"
_SECONDS = 30
_TOO_MUCH = (EOFError, OverflowError, MemoryError, RecursionError)


def read_qdrant(location: str, part: str | None, columns: Columns, batch_rows: int) -> VectorSource:
    """Open a collection in a folder, or on a server; vectors may have names, ids and texts are in the payload."""
    if location.startswith(("http://", "https://")):
        return _read_server(location, part, columns, batch_rows)
    return _read_folder(location, part, columns, batch_rows)


def _read_folder(location: str, part: str | None, columns: Columns, batch_rows: int) -> VectorSource:
    folder, where = Path(location), f"qdrant:{location}"
    if not (folder / _META).is_file():
        hint = "It looks like a server's folder: start the server, and give its address." if _of_server(folder) else ""
        raise VectorError(f"There is no Qdrant database in {location}: it has no {_META}.", hint or "Check the path.")
    collections = _read_meta(folder / _META)
    name = choose_part(part, list(collections), "collection", where)
    where = f"{where}#{name}"
    vectors = collections[name]
    vector = _choose_vector(vectors, columns.vectors, where)
    database = folder / "collection" / name / "storage.sqlite"
    try:
        connection = _open(database)
        rows = connection.execute("SELECT count(*) FROM points").fetchone()[0]
    except (sqlite3.Error, ValueError, OSError) as error:
        raise VectorError(f"{database} cannot be read: {first_line(error)}.", DAMAGED) from error
    records = gather(_points(connection, replace(columns, vectors=vector), where), where, "point", batch_rows)
    # As they were given: only the server normalises what it compares by cosine.
    distance = _settings(vectors, vector).get("distance")
    storage = StorageInfo("Qdrant collection (local folder)", precision="float64", distance=distance)
    return VectorSource(where, rows, unchanged([database], where, records), unit="point", storage=storage)


def _read_meta(path: Path) -> dict[str, dict[str, Any]]:
    """Return the settings of the vectors of each collection, by its name."""
    try:
        collections = json.loads(path.read_text(encoding="utf-8"))["collections"]
        vectors = {name: collection.get("vectors") or {} for name, collection in collections.items()}
        if not all(isinstance(value, dict) for value in vectors.values()):
            raise ValueError("a collection's vectors are not described")
    except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise VectorError(f"{path} cannot be read: {first_line(error)}.", DAMAGED) from error
    return vectors


def _open(database: Path) -> sqlite3.Connection:
    # Immutable: no lock is taken, and no file is created. A journal would hold rows that are not read this way.
    if any(database.with_name(f"{database.name}{suffix}").exists() for suffix in ("-journal", "-wal")):
        raise VectorError(f"{database} is being written.", "Stop what writes to it, and run again.")
    return sqlite3.connect(f"{database.resolve().as_uri()}?immutable=1", uri=True)


def _points(connection: sqlite3.Connection, columns: Columns, where: str) -> Iterator[Row]:
    try:
        for key, blob in connection.execute("SELECT id, point FROM points"):
            try:
                state = _PlainUnpickler(io.BytesIO(blob)).load().__dict__
                yield _row(state["id"], state.get("vector"), state.get("payload"), columns)
            # Errors that a damaged or forged pickle can raise.
            except (pickle.UnpicklingError, LookupError, AttributeError, TypeError, ValueError, *_TOO_MUCH) as error:
                raise VectorError(
                    f"{where}, point {show_id(key)} holds data that Qdrant does not write: {first_line(error)}.",
                    "For your safety, it is not read. If the folder is damaged, restore it from a backup.",
                ) from error
    except sqlite3.Error as error:
        raise VectorError(f"{where} cannot be read: {first_line(error)}.", DAMAGED) from error
    finally:
        connection.close()


class _Point:
    """Stands in for the client's class of the same content; takes values, runs nothing."""

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state["__dict__"])


class _PlainUnpickler(pickle.Unpickler):
    """Reads values and points; refuses every other class, so that no code in a pickle can run."""

    def find_class(self, module: str, name: str) -> type[_Point]:
        if module.startswith("qdrant_client.") and name == "PointStruct":
            return _Point
        raise pickle.UnpicklingError(f"the class {module}.{name}")


def _read_server(location: str, part: str | None, columns: Columns, batch_rows: int) -> VectorSource:
    require_extra("qdrant", "qdrant_client")
    from qdrant_client import QdrantClient

    where = f"qdrant:{mask_passwords(location)}"
    key, address = os.environ.get(_KEY), urlsplit(location)
    if key and address.scheme != "https" and address.hostname not in LOOPBACK:
        raise VectorError(
            f"{where} is plain http. A key is never sent over plain http, except to localhost.",
            f"Use https, or unset {_KEY}.",
        )
    client = QdrantClient(url=location, api_key=key, timeout=_SECONDS, check_compatibility=False, prefer_grpc=False)
    names = [collection.name for collection in _ask(where, client.get_collections).collections]
    name = choose_part(part, names, "collection", where)
    where = f"{where}#{name}"
    described = _ask(where, client.get_collection, name)
    parameters = described.config.params
    vectors = json.loads(json.dumps(parameters.vectors, default=lambda model: model.model_dump(mode="json")))
    vector = _choose_vector(vectors or {}, columns.vectors, where)
    settings = _settings(vectors or {}, vector)
    quantised = settings.get("quantization_config") or described.config.quantization_config
    storage = StorageInfo(
        "Qdrant collection (server)",
        precision=settings.get("datatype") or "float32",
        # The server keeps the originals next to the quantised vectors, and returns the originals.
        quantised=f"for searching only ({_first_key(quantised)})" if quantised else None,
        distance=settings.get("distance"),
    )
    rows = _ask(where, client.count, name, exact=True).count

    def points() -> Iterator[VectorBatch]:
        yield from gather(
            _scroll(client, name, replace(columns, vectors=vector), where, batch_rows), where, "point", batch_rows
        )
        now = _ask(where, client.count, name, exact=True).count
        if now != rows:
            raise VectorError(
                f"{where} changed while it was read: it had {rows:,} points, and now has {now:,}.",
                "Stop what writes to it, or read a snapshot of it, and run again.",
            )

    return VectorSource(where, rows, points(), unit="point", storage=storage)


def _scroll(client: Any, name: str, columns: Columns, where: str, batch_rows: int) -> Iterator[Row]:
    offset = None
    while True:
        points, offset = _ask(
            where,
            client.scroll,
            name,
            limit=batch_rows,
            offset=offset,
            with_payload=True,
            with_vectors=[columns.vectors] if columns.vectors else True,
        )
        yield from (_row(point.id, point.vector, point.payload, columns) for point in points)
        if offset is None:
            return


def _ask(where: str, question: Any, *arguments: Any, **options: Any) -> Any:
    """Ask a server, and turn what can go wrong into an error with a remedy."""
    from qdrant_client.http.exceptions import ApiException, ResponseHandlingException, UnexpectedResponse

    try:
        return question(*arguments, **options)
    except UnexpectedResponse as error:
        if error.status_code in (401, 403):
            raise VectorError(
                f"{where} refuses these credentials ({error.status_code}).",
                f"Set {_KEY} to a key that may read the collection.",
            ) from error
        raise VectorError(f"{where} answers: {first_line(error)}", "Check the address.") from error
    except (ResponseHandlingException, ApiException) as error:
        raise VectorError(f"{where} cannot be reached: {first_line(error)}.", "Check that it runs.") from error


def _choose_vector(vectors: dict[str, Any], column: str | None, where: str) -> str | None:
    """Return which named vector to read; None where vectors have no names."""
    if "size" in vectors:
        if column is not None:
            raise VectorError(f"{where} has one vector per point, without a name.", "Leave out `column`.")
        return None
    return choose_part(column, list(vectors), "named vector", where, how="`column=NAME`")


def _settings(vectors: dict[str, Any], vector: str | None) -> dict[str, Any]:
    settings = vectors if vector is None else vectors[vector]
    return settings if isinstance(settings, dict) else {}


def _row(identifier: Any, value: Any, payload: dict[str, Any] | None, columns: Columns) -> Row:
    if isinstance(value, dict):
        value = value.get(columns.vectors)
    if value is not None and not isinstance(value, list):
        raise ValueError(f"{type(value).__name__} instead of a list of numbers")
    payload = payload if isinstance(payload, dict) else {}
    # A point may lack a field that others have.
    text = payload.get(columns.texts or choose_text(map(str, payload), None, "") or "")
    name = payload.get(columns.ids) if columns.ids else None
    return str(identifier if name is None else name), value, text if isinstance(text, str) else None


def _first_key(settings: Any) -> str:
    plain = settings if isinstance(settings, dict) else settings.model_dump()
    return next(iter(plain), "quantised")


def _of_server(folder: Path) -> bool:
    return (folder / "raft_state.json").exists() or (folder / "collections").is_dir()
