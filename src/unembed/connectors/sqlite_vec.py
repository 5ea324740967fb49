"""Virtual tables of sqlite-vec (vec0), read from the tables that it keeps behind them: the extension is not needed.

A table ``docs`` keeps its vectors in ``docs_vector_chunks00``, many to a row, with a bitmap of which are there in
``docs_chunks``. Its own ids are in ``docs_rowids``, auxiliary columns in ``docs_auxiliary``.
"""

import re
import sqlite3
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from unembed.connectors.source import (
    DAMAGED,
    Columns,
    Id,
    StorageInfo,
    VectorBatch,
    VectorSource,
    choose_column,
    choose_text,
)
from unembed.errors import VectorError

_DEFINITION = re.compile(r"\bUSING\s+vec0\s*\((?P<arguments>.*)\)\s*$", re.IGNORECASE | re.DOTALL)
_VECTOR = re.compile(r"(?P<kind>float|f32|int8|i8|bit)\s*\[\s*(?P<dim>\d+)\s*\]", re.IGNORECASE)
_DISTANCE = re.compile(r"distance_metric\s*=\s*(\w+)", re.IGNORECASE)
_FORMATS = {"float": "<f4", "f32": "<f4", "int8": "i1", "i8": "i1"}


def quote(name: str) -> str:
    """Return a name as SQL writes it."""
    return '"' + name.replace('"', '""') + '"'


@dataclass(frozen=True)
class _Vectors:
    """A column of vectors."""

    number: int
    kind: str
    dim: int
    distance: str


@dataclass(frozen=True)
class VecTable:
    """What a virtual table consists of."""

    name: str
    vectors: dict[str, _Vectors]
    auxiliary: list[str]
    """Columns that are only stored, in their order."""
    has_own_ids: bool
    """Whether rows are named by a text instead of a number."""

    @classmethod
    def find(cls, connection: sqlite3.Connection, name: str) -> "VecTable | None":
        """Return the table of a name, if it is one of sqlite-vec's."""
        row = connection.execute("SELECT sql FROM sqlite_master WHERE type = 'table' AND name = ?", (name,)).fetchone()
        match = _DEFINITION.search(row[0] or "") if row else None
        if match is None:
            return None
        vectors: dict[str, _Vectors] = {}
        auxiliary: list[str] = []
        own_ids = False
        for argument in map(str.strip, match["arguments"].split(",")):
            column = argument.lstrip("+ ").split()[0].strip("\"`'[]") if argument.lstrip("+ ") else ""
            found = _VECTOR.search(argument)
            if argument.startswith("+"):
                auxiliary.append(column)
            elif found:
                distance = _DISTANCE.search(argument)
                vectors[column] = _Vectors(
                    len(vectors), found["kind"].lower(), int(found["dim"]), distance[1].lower() if distance else "l2"
                )
            elif re.search(r"\btext\s+primary\s+key\b", argument, re.IGNORECASE):
                own_ids = True
        return cls(name, vectors, auxiliary, own_ids)

    def open(self, connection: sqlite3.Connection, columns: Columns, where: str, batch_rows: int) -> VectorSource:
        """Open a column of vectors."""
        numbers = [name for name, each in self.vectors.items() if each.kind in _FORMATS]
        if self.vectors and not numbers:
            raise VectorError(
                f"{where} holds vectors of single bits.", "Give the vectors that they were made from, if you have them."
            )
        if columns.ids is not None:
            raise VectorError(f"{where} names its rows itself.", "Leave out `id_column`.")
        chosen = choose_column(numbers, columns.vectors, [*self.vectors, *self.auxiliary], where)
        vectors = self.vectors[chosen]
        elsewhere = columns.texts.partition(".")[::2] if columns.texts and "." in columns.texts else None
        if elsewhere is not None:
            self._check(connection, *elsewhere, where)
            texts = None
        else:
            texts = choose_text(self.auxiliary, columns.texts, where)
        (rows,) = connection.execute(f"SELECT count(*) FROM {quote(f'{self.name}_rowids')}").fetchone()
        storage = StorageInfo(
            "sqlite-vec table",
            precision="float32" if _FORMATS[vectors.kind] == "<f4" else "int8",
            quantised=None if _FORMATS[vectors.kind] == "<f4" else "whole numbers of 8 bits",
            distance=vectors.distance,
        )
        records = self._read(connection, vectors, texts, elsewhere, where, batch_rows)
        return VectorSource(f"{where}.{chosen}", rows, records, storage=storage)

    def _check(self, connection: sqlite3.Connection, table: str, column: str, where: str) -> None:
        names = [row[1] for row in connection.execute(f"PRAGMA table_info({quote(table)})")]
        if column not in names:
            raise VectorError(
                f"{where}: there is no column '{column}' in a table '{table}'.",
                "Give `text_column=TABLE.COLUMN` of a table with the same row ids.",
            )

    def _read(
        self,
        connection: sqlite3.Connection,
        vectors: _Vectors,
        texts: str | None,
        elsewhere: Sequence[str] | None,
        where: str,
        batch_rows: int,
    ) -> Iterator[VectorBatch]:
        kind = np.dtype(_FORMATS[vectors.kind])
        chunks = connection.execute(f"SELECT chunk_id, size, validity, rowids FROM {quote(f'{self.name}_chunks')}")
        query = f"SELECT vectors FROM {quote(f'{self.name}_vector_chunks{vectors.number:02}')} WHERE rowid = ?"
        for chunk, size, validity, rowids in chunks:
            row = connection.execute(query, (chunk,)).fetchone()
            there = np.unpackbits(np.frombuffer(validity, np.uint8), bitorder="little")[:size].astype(bool)
            if row is None or len(row[0]) != size * vectors.dim * kind.itemsize or len(rowids) != 8 * size:
                raise VectorError(f"{where}, chunk {chunk} has not the size that it should have.", DAMAGED)
            values = np.frombuffer(row[0], kind).reshape(size, vectors.dim)[there]
            keys = np.frombuffer(rowids, "<i8")[there].tolist()
            for start in range(0, len(keys), batch_rows):
                part = keys[start : start + batch_rows]
                yield VectorBatch(
                    self._names(connection, part),
                    values[start : start + batch_rows],
                    self._texts(connection, part, texts, elsewhere),
                )

    def _names(self, connection: sqlite3.Connection, keys: list[int]) -> Sequence[Id]:
        if not self.has_own_ids:
            return keys
        names = _by_row(connection, f"{self.name}_rowids", "id", keys)
        return [str(names.get(key, key)) for key in keys]

    def _texts(
        self, connection: sqlite3.Connection, keys: list[int], texts: str | None, elsewhere: Sequence[str] | None
    ) -> list[str | None] | None:
        if elsewhere is not None:
            found = _by_row(connection, elsewhere[0], elsewhere[1], keys)
        elif texts is not None:
            found = _by_row(connection, f"{self.name}_auxiliary", f"value{self.auxiliary.index(texts):02}", keys)
        else:
            return None
        return [text if isinstance(text := found.get(key), str) else None for key in keys]


def _by_row(connection: sqlite3.Connection, table: str, column: str, keys: list[int]) -> dict[int, Any]:
    """Return the values of a column by their row ids."""
    values: dict[int, Any] = {}
    for start in range(0, len(keys), 500):  # below the number of parameters that every SQLite takes
        part = keys[start : start + 500]
        marks = ", ".join("?" * len(part))
        values |= connection.execute(
            f"SELECT rowid, {quote(column)} FROM {quote(table)} WHERE rowid IN ({marks})", part
        ).fetchall()
    return values
