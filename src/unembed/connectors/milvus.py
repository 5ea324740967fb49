"""Vectors of a Milvus collection: of a server, or of the folder or file of Milvus Lite, of which a copy is read."""

import logging
import os
import shutil
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from unembed.connectors.source import (
    Columns,
    Row,
    StorageInfo,
    VectorBatch,
    VectorSource,
    choose_column,
    choose_id,
    choose_part,
    choose_text,
    fingerprint,
    gather,
)
from unembed.connectors.uri import mask_passwords
from unembed.errors import VectorError, first_line, require_extra

_TOKEN = "MILVUS_TOKEN"
_SECONDS = 30
_PRECISIONS = {
    "FLOAT_VECTOR": "float32",
    "FLOAT16_VECTOR": "float16",
    "BFLOAT16_VECTOR": "bfloat16",
    "INT8_VECTOR": "int8",
}
_TRIES = 3


def read_milvus(location: str, part: str | None, columns: Columns, batch_rows: int) -> VectorSource:
    """Open a collection. A server must have loaded it; it is never loaded from here."""
    require_extra("milvus", "pymilvus")
    from pymilvus import DataType, MilvusClient

    where = f"milvus:{mask_passwords(location)}"
    copy, address = None, location
    if not location.startswith(("http://", "https://")):
        require_extra("milvus", "milvus_lite")
        copy = _copy(Path(location), where)
        address = str(Path(copy.name) / "copy.db")
    token = "" if copy else os.environ.get(_TOKEN, "")
    client = _ask(where, MilvusClient, address, token=token, timeout=_SECONDS)
    name = choose_part(part, _ask(where, client.list_collections, timeout=_SECONDS), "collection", where)
    where = f"{where}#{name}"
    described = _ask(where, client.describe_collection, name, timeout=_SECONDS)
    kinds = {field["name"]: DataType(field["type"]).name for field in described["fields"]}
    key = next(field["name"] for field in described["fields"] if field.get("is_primary"))
    chosen = choose_column(
        [field for field, kind in kinds.items() if kind in _PRECISIONS], columns.vectors, kinds, where
    )
    texts = [field for field, kind in kinds.items() if kind == "VARCHAR"]
    is_open = bool(described.get("enable_dynamic_field"))
    columns = replace(
        columns,
        vectors=chosen,
        texts=columns.texts if is_open and columns.texts else choose_text(texts, columns.texts, where),
        ids=columns.ids if is_open and columns.ids else choose_id(kinds, columns.ids, where) if columns.ids else key,
    )
    # Fields that the schema does not name are only given if all are asked for.
    wanted = ["*"] if is_open else [field for field in (chosen, columns.texts, columns.ids) if field]
    if copy:
        _ask(where, client.load_collection, name)
    # The server's statistics leave out what it has not yet written to disk.
    count = {"output_fields": ["count(*)"], "consistency_level": "Strong", "timeout": _SECONDS}
    rows = int(_ask(where, client.query, name, **count)[0]["count(*)"])
    pages = {"batch_size": batch_rows, "output_fields": wanted, "timeout": _SECONDS}
    iterator = _ask(where, client.query_iterator, name, **pages) if rows else None
    found = gather(_rows(iterator, columns, key, kinds[chosen], where), where, "id", batch_rows)
    storage = StorageInfo(
        "Milvus collection (local)" if copy else "Milvus collection (server)",
        precision=_PRECISIONS[kinds[chosen]],
        distance=_distance(client, name, chosen, where),
    )
    return VectorSource(where, rows, _closing(found, client, copy), unit="id", storage=storage)


def _copy(path: Path, where: str) -> "tempfile.TemporaryDirectory[str]":
    """Copy a database in a consistent state: Milvus Lite writes to what it opens."""
    if not path.exists() or (path.is_dir() and not any(path.iterdir())):
        raise VectorError(f"There is no Milvus database at {path}.", "Check the path.")
    copy = tempfile.TemporaryDirectory(prefix="unembed-milvus-", ignore_cleanup_errors=True)
    target = Path(copy.name) / "copy.db"
    for _ in range(_TRIES):
        before = fingerprint([path])
        try:
            if path.is_dir():
                shutil.rmtree(target, ignore_errors=True)
                shutil.copytree(path, target, ignore=shutil.ignore_patterns("LOCK"))
            else:
                shutil.copyfile(path, target)
        except (OSError, shutil.Error) as error:
            raise VectorError(
                f"{where} cannot be copied: {first_line(error)}.",
                "Milvus Lite writes to what it opens, so a copy is read. Make room, or set TMPDIR to another folder.",
            ) from error
        if fingerprint([path]) == before:
            return copy
    raise VectorError(f"{where} changed while it was read.", "Stop what writes to it, or give a copy, and run again.")


def _rows(iterator: Any, columns: Columns, key: str, kind: str, where: str) -> Iterator[Row]:
    try:
        while iterator is not None and (page := _ask(where, iterator.next)):
            for row in page:
                text = row.get(columns.texts or choose_text(map(str, row), None, "") or "")
                name = row.get(columns.ids or key, row[key])
                identifier = name if isinstance(name, int) else str(name)
                yield identifier, _numbers(row.get(columns.vectors), kind), text if isinstance(text, str) else None
    finally:
        if iterator is not None:
            iterator.close()


def _numbers(value: Any, kind: str) -> Any:
    """Return the numbers of a vector, which short ones give as bytes."""
    if isinstance(value, list) and len(value) == 1 and isinstance(value[0], bytes):
        value = value[0]
    if not isinstance(value, bytes):
        return value
    if kind == "FLOAT16_VECTOR":
        return np.frombuffer(value, "<f2")
    if kind == "INT8_VECTOR":
        return np.frombuffer(value, "i1")
    return (np.frombuffer(value, "<u2").astype(np.uint32) << 16).view(np.float32)


def _distance(client: Any, name: str, column: str, where: str) -> str | None:
    """Return what an index of the column compares by, if there is one."""
    try:
        for index in _ask(where, client.list_indexes, name, timeout=_SECONDS):
            described = _ask(where, client.describe_index, name, index, timeout=_SECONDS) or {}
            if described.get("field_name", column) == column and described.get("metric_type"):
                return str(described["metric_type"]).lower()
    except VectorError:
        return None
    return None


def _closing(
    records: Iterator[VectorBatch], client: Any, copy: "tempfile.TemporaryDirectory[str] | None"
) -> Iterator[VectorBatch]:
    try:
        yield from records
    finally:
        client.close()
        if copy:
            _release(copy)


def _release(copy: "tempfile.TemporaryDirectory[str]") -> None:
    """Stop the server that Milvus Lite started for a copy, and remove the copy."""
    from milvus_lite.server_manager import server_manager_instance

    server_manager_instance.release_server(str(Path(copy.name) / "copy.db"))
    copy.cleanup()


def _ask(where: str, question: Callable[..., Any], *arguments: Any, **options: Any) -> Any:
    """Ask Milvus, and turn what can go wrong into an error with a remedy."""
    from grpc import RpcError
    from pymilvus import MilvusException

    try:
        with _silent():
            return question(*arguments, **options)
    except MilvusException as error:
        said = first_line(error)
        # When it connects, the client says "illegal connection params", and only the cause says what is wrong.
        refused = "UNAUTHENTICATED" in str(error.__cause__)
        if refused or "auth" in said.lower() or "permission" in said.lower():
            raise VectorError(
                f"{where} refuses these credentials.", f"Set {_TOKEN} to USER:PASSWORD or a key that may read it."
            ) from error
        if "not loaded" in said.lower():
            raise VectorError(
                f"{where} is not loaded.", "Load it, and release it again when you are done; this is not done for you."
            ) from error
        raise VectorError(
            f"{where} cannot be read: {mask_passwords(said)}", "Check the address, and that it runs."
        ) from error
    except RpcError as error:  # the client leaves those of a time limit as they are
        raise VectorError(
            f"{where} did not answer within {_SECONDS} seconds.", "Check that it runs, and run again."
        ) from error
    except (OSError, ValueError, RuntimeError) as error:
        raise VectorError(f"{where} cannot be read: {first_line(error)}.", "Check the path.") from error


@contextmanager
def _silent() -> Iterator[None]:
    """Keep the client from printing a traceback of what becomes an error here."""
    logger = logging.getLogger("pymilvus")
    level = logger.level
    logger.setLevel(logging.CRITICAL)
    try:
        yield
    finally:
        logger.setLevel(level)
