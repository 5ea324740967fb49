"""Vectors as lines of text: numbers, a JSON array, or a JSON object with one in it."""

import json
import re
from collections.abc import Iterable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

from unembed.connectors.source import (
    Columns,
    Row,
    StorageInfo,
    VectorSource,
    choose_column,
    choose_id,
    choose_text,
    gather,
)
from unembed.corpus.lines import read_lines
from unembed.errors import CorpusError, VectorError

_BETWEEN_NUMBERS = re.compile(r"[\s,;]+")
_REMEDY = "Put one vector on each line: a JSON array, or numbers with commas or spaces between them."
_LONGEST_SHOWN = 30


def read_vector_lines(
    lines: Iterable[str],
    *,
    name: str,
    column: str | None = None,
    id_column: str | None = None,
    text_column: str | None = None,
    batch_rows: int = 1024,
) -> VectorSource:
    """Return the vectors that lines of text hold, one each; empty lines are passed over.

    Args:
        lines: ``[0.1, -0.2]``, ``0.1 -0.2``, ``0.1,-0.2`` or ``{"embedding": [0.1, -0.2]}``.
        name: where they come from, for errors.
        column: the field of an object that holds the vector; by default the only one that can, or one with a usual
            name such as ``embedding``.
        id_column: the field that names the row, if it is not called ``id`` or the like.
        text_column: the field that holds the text, if it is not called ``text`` or the like.
        batch_rows: vectors per batch.
    """
    records = gather(_numbered(lines, name, Columns(column, id_column, text_column)), name, "line", batch_rows)
    return VectorSource(name, None, records, unit="line", storage=StorageInfo("lines of text", precision="decimal"))


def read_file_lines(path: Path) -> Iterator[str]:
    """Yield the lines of a file of vectors, plain or gzipped."""
    try:
        yield from read_lines(path)
    except CorpusError as error:
        raise VectorError(
            error.problem, "The file is damaged or of another format: write or fetch the vectors again."
        ) from error


def parse_numbers(text: str, where: str) -> list[float]:
    """Return the numbers of a vector that is written as text, in brackets or without."""
    inner = text.strip().removeprefix("[").removesuffix("]").strip(" \t\r\n,")
    words = _BETWEEN_NUMBERS.split(inner) if inner else []
    try:
        return [float(word) for word in words]
    except ValueError:
        wrong = next(word for word in words if not is_number(word))
        shown = wrong if len(wrong) <= _LONGEST_SHOWN else f"{wrong[: _LONGEST_SHOWN - 1]}…"
        raise VectorError(f"{where}: '{shown}' is not a number.", _REMEDY) from None


def is_number(text: str) -> bool:
    """Whether a text is a number."""
    try:
        float(text)
    except ValueError:
        return False
    return True


def _numbered(lines: Iterable[str], name: str, columns: Columns) -> Iterator[Row]:
    for number, line in enumerate(lines, start=1):
        if line.isspace() or not line:
            continue
        where = f"{name}, line {number}"
        if not line.lstrip().startswith("{"):
            yield number, parse_numbers(line, where), None
            continue
        record = _record(line, where)
        # Chosen once: a field that only looks like a vector in some later line must not be taken there.
        columns = replace(columns, vectors=choose_vector(record, columns, where))
        yield to_row(record, columns, number, where)


def choose_vector(record: dict[str, Any], columns: Columns, where: str) -> str:
    """Return the field of a record that holds its vector."""
    return choose_column([key for key in record if is_vector(record[key])], columns.vectors, record, where)


def to_row(record: dict[str, Any], columns: Columns, number: int, where: str) -> Row:
    """Return a record as a row, with its own id if it has one, else its number."""
    text = record.get(choose_text(record, columns.texts, where) or "")
    name = record.get(choose_id(record, columns.ids, where) or "")
    named = isinstance(name, str | int) and not isinstance(name, bool) and name != ""
    return str(name) if named else number, record[columns.vectors or ""], text if isinstance(text, str) else None


def _record(line: str, where: str) -> dict[str, Any]:
    try:
        record: dict[str, Any] = json.loads(line)
    except (ValueError, RecursionError) as error:
        raise VectorError(f"{where} is not JSON: {error}.", _REMEDY) from error
    return record


def is_vector(value: Any) -> bool:
    """Whether a value of JSON is a list of numbers."""
    # bool is a kind of int, but no coordinate.
    return isinstance(value, list) and bool(value) and all(type(number) in (int, float) for number in value)
