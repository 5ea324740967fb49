"""Vectors in tables: a column per number, or one column of lists."""

import csv
from collections.abc import Iterator
from pathlib import Path

from unembed.connectors.lines import is_number, parse_numbers, read_file_lines
from unembed.connectors.source import (
    Columns,
    Row,
    StorageInfo,
    VectorSource,
    choose_column,
    choose_id,
    choose_text,
    gather,
    unchanged,
)
from unembed.corpus.lines import LONGEST_CSV_FIELD
from unembed.errors import VectorError

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
