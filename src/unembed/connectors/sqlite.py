"""Vectors of a SQLite database: virtual tables of sqlite-vec, and columns of float32 blobs or of JSON lists.

The file is opened as an immutable one, without a lock. If there is a journal beside it, a copy of both is read instead:
SQLite itself would write to them.
"""

import json
import shutil
import sqlite3
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from unembed.connectors.source import (
    DAMAGED,
    Columns,
    Row,
    StorageInfo,
    VectorBatch,
    VectorSource,
    choose_column,
    choose_id,
    choose_table,
    choose_text,
    gather,
    unchanged,
)
from unembed.connectors.sqlite_vec import VecTable, quote
from unembed.errors import VectorError, first_line

_JOURNALS = ("-wal", "-journal")
_SAMPLED = 20


@dataclass(frozen=True)
class _Database:
    connection: sqlite3.Connection
    copy: "tempfile.TemporaryDirectory[str] | None"

    def close(self) -> None:
        self.connection.close()
        if self.copy:
            self.copy.cleanup()


def read_sqlite(location: str, part: str | None, columns: Columns, batch_rows: int) -> VectorSource:
    """Open a table; ``part`` is ``table`` or ``table.column``. Texts of another table: ``text_column=TABLE.COLUMN``."""
    path, where = Path(location), f"sqlite:{location}"
    if not path.is_file():
        raise VectorError(f"There is no file {location}.", "Check the path.")
    watched = [path, *(path.with_name(f"{path.name}{suffix}") for suffix in _JOURNALS)]
    try:
        database = _open(path)
        names = _tables(database.connection)
        virtual = {name: found for name in names if (found := VecTable.find(database.connection, name))}
        shadows = tuple(f"{name}_" for name in virtual)
        plain = {
            name: fields
            for name in names
            if name not in virtual and not name.startswith(shadows) and (fields := _fields(database.connection, name))
        }
        holding = [*virtual, *(name for name, fields in plain.items() if any(map(_precision, fields.values())))]
        table, column = choose_table(part, [*virtual, *plain], holding, where)
        where = f"{where}#{table}"
        columns = replace(columns, vectors=column or columns.vectors)
        if table in virtual:
            source = virtual[table].open(database.connection, columns, where, batch_rows)
        else:
            source = _open_plain(database.connection, table, plain[table], columns, where, batch_rows)
    except (sqlite3.Error, ValueError, OSError) as error:
        raise VectorError(f"{location} cannot be read as a SQLite database: {first_line(error)}.", DAMAGED) from error
    return replace(source, records=unchanged(watched, where, _guarded(database, source.records, where)))


def _open(path: Path) -> _Database:
    if not any(path.with_name(f"{path.name}{suffix}").exists() for suffix in _JOURNALS):
        return _Database(sqlite3.connect(f"{path.resolve().as_uri()}?immutable=1", uri=True), None)
    copy = tempfile.TemporaryDirectory(prefix="unembed-sqlite-", ignore_cleanup_errors=True)
    for suffix in ("", *_JOURNALS):
        if (source := path.with_name(f"{path.name}{suffix}")).exists():
            shutil.copyfile(source, Path(copy.name) / f"copy.db{suffix}")
    return _Database(sqlite3.connect(Path(copy.name) / "copy.db"), copy)


def _guarded(database: _Database, records: Iterator[VectorBatch], where: str) -> Iterator[VectorBatch]:
    try:
        yield from records
    except sqlite3.Error as error:
        raise VectorError(f"{where} cannot be read: {first_line(error)}.", DAMAGED) from error
    finally:
        database.close()


def _tables(connection: sqlite3.Connection) -> list[str]:
    query = "SELECT name FROM sqlite_master WHERE type IN ('table', 'view') AND name NOT LIKE 'sqlite\\_%' ESCAPE '\\'"
    return [name for (name,) in connection.execute(query)]


def _fields(connection: sqlite3.Connection, table: str) -> dict[str, Any]:
    """Return the columns of a table, each with the first value of the first rows that is not NULL."""
    try:
        names = [row[1] for row in connection.execute(f"PRAGMA table_info({quote(table)})")]
        rows = connection.execute(f"SELECT * FROM {quote(table)} LIMIT {_SAMPLED}").fetchall()
    except sqlite3.OperationalError:  # a virtual table of an extension that is not loaded
        return {}
    values = zip(*rows, strict=True) if rows else [()] * len(names)
    return {
        name: next((value for value in column if value is not None), None)
        for name, column in zip(names, values, strict=True)
    }


def _precision(value: Any) -> str | None:
    """Return the precision of the vector that a value is; None if it is none."""
    if isinstance(value, bytes) and len(value) >= 8 and len(value) % 4 == 0:
        return "float32"
    if isinstance(value, str) and value.lstrip().startswith("["):
        numbers = _parse(value)
        return "decimal" if numbers and all(isinstance(number, int | float) for number in numbers) else None
    return None


def _parse(value: str) -> list[Any] | None:
    try:
        numbers = json.loads(value)
    except (ValueError, RecursionError):
        return None
    return numbers if isinstance(numbers, list) else None


def _open_plain(
    connection: sqlite3.Connection, table: str, fields: dict[str, Any], columns: Columns, where: str, batch_rows: int
) -> VectorSource:
    chosen = choose_column(
        [name for name, value in fields.items() if _precision(value)], columns.vectors, fields, where
    )
    is_text = {name: isinstance(value, str) and name != chosen for name, value in fields.items()}
    texts = choose_text([name for name, text in is_text.items() if text], columns.texts, where)
    ids = choose_id(fields, columns.ids, where)
    (rows,) = connection.execute(f"SELECT count(*) FROM {quote(table)}").fetchone()
    selected = f"{quote(ids) if ids else 'NULL'}, {quote(chosen)}, {quote(texts) if texts else 'NULL'}"

    def records() -> Iterator[Row]:
        query = f"SELECT {selected} FROM {quote(table)}"
        for number, (name, value, text) in enumerate(connection.execute(query)):
            identifier = number if name is None else name if isinstance(name, int) else str(name)
            yield identifier, _vector(value, where, identifier), text if isinstance(text, str) else None

    storage = StorageInfo("SQLite table", precision=_precision(fields[chosen]) or "unknown")
    return VectorSource(f"{where}.{chosen}", rows, gather(records(), where, "row", batch_rows), storage=storage)


def _vector(value: Any, where: str, identifier: int | str) -> Any:
    if value is None:
        return None
    if isinstance(value, bytes) and value and len(value) % 4 == 0:
        return np.frombuffer(value, "<f4")
    numbers = _parse(value) if isinstance(value, str) else None
    if numbers is None:
        raise VectorError(
            f"{where}, row {identifier} holds neither float32 numbers nor a list.", "Fix or remove it, and run again."
        )
    return numbers
