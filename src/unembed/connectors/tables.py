"""Vectors in tables: a column per number, or one column of lists."""

import csv
from collections.abc import Iterable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from unembed.connectors.lines import is_number, parse_numbers, read_file_lines
from unembed.connectors.source import (
    Columns,
    Row,
    StorageInfo,
    VectorBatch,
    VectorSource,
    choose_column,
    choose_id,
    choose_text,
    gather,
    unchanged,
)
from unembed.corpus.lines import LONGEST_CSV_FIELD
from unembed.errors import VectorError, first_line, require_extra

# Columns of numbers that count or name rows; pandas leaves the first one's name empty.
_NO_COORDINATES = {"", "id", "index", "unnamed: 0"}

Rows = Iterator[tuple[int, list[str]]]


def read_csv(path: Path, columns: Columns, batch_rows: int) -> VectorSource:
    """Read a ``.csv`` with commas and quotes."""
    csv.field_size_limit(max(csv.field_size_limit(), LONGEST_CSV_FIELD))
    rows = csv.reader(read_file_lines(path), strict=True)

    def numbered() -> Rows:
        try:
            for row in rows:
                yield rows.line_num, row
        except csv.Error as error:
            raise VectorError(
                f"{path}, line {rows.line_num} is not CSV: {error}.",
                "Fix this line, or use a .jsonl file, which needs no quotes around commas.",
            ) from error

    return _read_table(numbered(), path, columns, batch_rows)


def read_tsv(path: Path, columns: Columns, batch_rows: int) -> VectorSource:
    """Read a ``.tsv``, where a quote is a character like any other."""
    lines = (line.rstrip("\r\n") for line in read_file_lines(path))
    numbered = ((number, line.split("\t") if line else []) for number, line in enumerate(lines, start=1))
    return _read_table(numbered, path, columns, batch_rows)


def read_parquet(path: Path, columns: Columns, batch_rows: int) -> VectorSource:
    """Read a column of lists of numbers, of fixed size or not, from a Parquet file."""
    require_extra("train", "pyarrow")
    import pyarrow
    import pyarrow.parquet

    try:
        with pyarrow.parquet.ParquetFile(path) as file:
            schema, count = file.schema_arrow, file.metadata.num_rows
    except (pyarrow.ArrowException, OSError) as error:
        raise VectorError(f"{path} cannot be read as Parquet: {first_line(error)}.", "Write it again.") from error
    holding = [field.name for field in schema if is_list_of_numbers(field.type)]
    name = choose_column(holding, columns.vectors, schema.names, str(path))
    value = schema.field(name).type.value_type
    chosen = complete_columns(schema, replace(columns, vectors=name), str(path))
    records = unchanged([path], str(path), _read_lists(path, chosen, batch_rows))
    return VectorSource(str(path), count, records, storage=StorageInfo("Parquet file", precision=str(value)))


def is_list_of_numbers(kind: Any) -> bool:
    """Whether a column of this Arrow type can hold vectors."""
    from pyarrow import types

    if not (types.is_list(kind) or types.is_large_list(kind) or types.is_fixed_size_list(kind)):
        return False
    return bool(types.is_floating(kind.value_type) or types.is_integer(kind.value_type))


def complete_columns(schema: Any, columns: Columns, where: str) -> Columns:
    """Return columns with those of a schema that hold texts and ids, if there are any."""
    from pyarrow import types

    texts = [field.name for field in schema if types.is_string(field.type) or types.is_large_string(field.type)]
    names = [field.name for field in schema if field.name in texts or types.is_integer(field.type)]
    return replace(columns, texts=choose_text(texts, columns.texts, where), ids=choose_id(names, columns.ids, where))


def _read_table(rows: Rows, path: Path, columns: Columns, batch_rows: int) -> VectorSource:
    records = unchanged([path], str(path), gather(_vectors(rows, path, columns), str(path), "line", batch_rows))
    return VectorSource(str(path), None, records, unit="line", storage=StorageInfo("table", precision="decimal"))


def _vectors(rows: Rows, path: Path, columns: Columns) -> Iterator[Row]:
    header: list[str] | None = None
    chosen: list[int] | None = None
    text = identifier = None
    for number, row in rows:
        if not row:
            continue
        where = f"{path}, line {number}"
        if header is None:
            header = row if _is_header(row) else [str(index) for index in range(len(row))]
            text = choose_text(header, columns.texts, where)
            identifier = choose_id(header, columns.ids, where)
            if header is row:
                continue
        if len(row) != len(header):
            raise VectorError(
                f"{where} has {len(row)} columns, where {len(header)} were expected.",
                "Every row needs as many columns as the first; a list with commas in it needs quotes around it.",
            )
        # The first row with vectors decides which columns they are in.
        chosen = chosen or _choose_columns(header, row, columns.vectors, {text, identifier}, where)
        cells = [(row[index], f"{where}, column '{header[index]}'") for index in chosen]
        vector = parse_numbers(*cells[0]) if _is_list(cells[0][0]) else [_number(*cell) for cell in cells]
        name = row[header.index(identifier)] if identifier else ""
        yield name or number, vector, row[header.index(text)] if text else None


def _is_header(row: list[str]) -> bool:
    """Whether a first row names columns: it holds no numbers, or they only count, as pandas' names of columns do."""
    values = [cell for cell in row if is_number(cell) or _is_list(cell)]
    return values == [str(index) for index in range(len(values))]


def _choose_columns(
    header: list[str], row: list[str], column: str | None, others: set[str | None], where: str
) -> list[int]:
    """Return the columns that hold the vectors; ``others`` hold texts and ids."""
    lists = [name for name, cell in zip(header, row, strict=True) if _is_list(cell)]
    if column is not None or lists:
        return [header.index(choose_column(lists, column, header, where))]
    numbers = [
        index
        for index, (name, cell) in enumerate(zip(header, row, strict=True))
        if is_number(cell) and name not in others and name.strip().lower() not in _NO_COORDINATES
    ]
    if not numbers:
        raise VectorError(
            f"{where} holds no vector: no column is a number or a list of numbers.",
            "Give one column per number, or one column that holds lists such as [0.1, -0.2].",
        )
    return numbers


def _is_list(cell: str) -> bool:
    return cell.lstrip().startswith("[")


def _number(cell: str, where: str) -> float:
    if not is_number(cell):
        raise VectorError(f"{where}: '{cell}' is not a number.", "Fill in or remove this row.")
    return float(cell)


def _read_lists(path: Path, columns: Columns, batch_rows: int) -> Iterator[VectorBatch]:
    import pyarrow
    import pyarrow.parquet

    try:
        with pyarrow.parquet.ParquetFile(path) as file:
            wanted = [name for name in (columns.vectors, columns.texts, columns.ids) if name]
            yield from read_arrow(file.iter_batches(batch_size=batch_rows, columns=wanted), columns, str(path))
    except (pyarrow.ArrowException, OSError) as error:
        raise VectorError(f"{path} cannot be read as Parquet: {first_line(error)}.", "Write it again.") from error


def read_arrow(batches: Iterable[Any], columns: Columns, where: str) -> Iterator[VectorBatch]:
    """Turn Arrow's record batches with a column of lists into ours; rows are counted if no column names them."""
    import pyarrow.compute

    start, width = 0, None
    name = columns.vectors
    for batch in batches:
        lists = batch.column(name)
        # A missing list counts as empty.
        sizes = pyarrow.compute.list_value_length(lists).fill_null(0).to_numpy(zero_copy_only=False)
        if not len(sizes):
            continue
        width = width or int(sizes[0])
        wrong = np.flatnonzero((sizes != width) | (sizes == 0))
        if len(wrong):
            raise VectorError(
                f"{where}, row {start + wrong[0]}: '{name}' holds {sizes[wrong[0]]} numbers; row 0 has {width}.",
                "Every vector needs the same dimension.",
            )
        ids = map(str, batch.column(columns.ids).to_pylist()) if columns.ids else range(start, start + len(sizes))
        vectors = lists.flatten().to_numpy(zero_copy_only=False).reshape(-1, width)
        yield VectorBatch(list(ids), vectors, batch.column(columns.texts).to_pylist() if columns.texts else None)
        start += len(sizes)
