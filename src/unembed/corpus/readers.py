"""Files and folders in, texts out, one at a time. Knows nothing of cleaning, of splitting, or of what texts are for."""

import csv
import itertools
import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from unembed.corpus.fields import DEFAULT_FIELD, as_text, choose_field
from unembed.corpus.hub import PREFIX, read_hub
from unembed.corpus.lines import LONGEST_CSV_FIELD, extension, read_lines
from unembed.errors import CorpusError, from_os_error, require_extra

_PARQUET_BATCH = 1024


def read_texts(source: str | Path, *, field: str | None = None) -> Iterator[str]:
    """Return the texts of a source as an iterator that holds no more than one batch of them in memory.

    What can be known at once (a missing file, an unknown format, a dataset that cannot be reached) is raised at once;
    what shows only while reading (a bad line) is raised then.

    Args:
        source: ``.txt`` (one text a line), ``.jsonl``, ``.csv``, ``.tsv``, each also with ``.gz``; ``.parquet``; a
            folder of such files, read in the order of their names; or ``hf:name[:config]``, a dataset on the
            Hugging Face hub (``hf:allenai/c4:fr``), streamed.
        field: the field or column that holds the text; by default ``text``, or the only column of a table. A number
            is a column of a ``.csv`` or ``.tsv`` without a header, counted from 0. Ignored for ``.txt``.

    Raises:
        CorpusError: the source cannot be read, with what to do about it.
    """
    if str(source).startswith(PREFIX):
        return read_hub(str(source).removeprefix(PREFIX), field)
    path = Path(source)
    try:
        if path.is_dir():
            files = sorted(file for file in path.iterdir() if file.is_file() and extension(file) in _READERS)
            if not files:
                raise CorpusError(f"The folder {path} holds no file that can be read.", _supported())
            return itertools.chain.from_iterable(_READERS[extension(file)](file, field) for file in files)
        if not path.exists():
            raise CorpusError(
                f"There is no file {path}.", f"Check the path; a dataset of the hub is written {PREFIX}name."
            )
    except OSError as error:
        raise from_os_error(error, f"reading {path}") from error
    if extension(path) not in _READERS:
        raise CorpusError(f"The format of {path.name} is not known.", _supported())
    return _READERS[extension(path)](path, field)


def _read_txt(path: Path, field: str | None) -> Iterator[str]:
    for line in read_lines(path):
        yield line.rstrip("\r\n")


def _read_jsonl(path: Path, field: str | None) -> Iterator[str]:
    for number, line in enumerate(read_lines(path), start=1):
        if not line.strip():
            continue
        where = f"{path}, line {number}"
        try:
            record: Any = json.loads(line)
        except (ValueError, RecursionError) as error:
            raise CorpusError(
                f"{where} is not JSON: {error}.", "Put one JSON object or string on each line."
            ) from error
        if isinstance(record, str):
            yield record
        elif isinstance(record, dict):
            # The fields may differ from line to line, so the only field of one line is no reason to take it.
            name = choose_field(record, field or DEFAULT_FIELD, where)
            yield as_text(record[name], name, where)
        else:
            raise CorpusError(
                f"{where} holds {type(record).__name__}, not an object or a string.",
                'Put one record on each line, such as {"text": "..."}.',
            )


def _read_csv(path: Path, field: str | None) -> Iterator[str]:
    csv.field_size_limit(max(csv.field_size_limit(), LONGEST_CSV_FIELD))
    rows = csv.reader(read_lines(path), strict=True)

    def numbered() -> Iterator[tuple[int, list[str]]]:
        try:
            for row in rows:
                yield rows.line_num, row
        except csv.Error as error:
            raise CorpusError(f"{path}, line {rows.line_num} is not CSV: {error}.", _REMEDY_FOR_CSV) from error

    return _read_column(numbered(), path, field)


def _read_tsv(path: Path, field: str | None) -> Iterator[str]:
    # A quote in a .tsv is a character like any other: texts that begin with one would otherwise swallow the next lines.
    rows = (line.rstrip("\r\n") for line in read_lines(path))
    return _read_column(((number, row.split("\t") if row else []) for number, row in enumerate(rows, 1)), path, field)


def _read_column(rows: Iterator[tuple[int, list[str]]], path: Path, field: str | None) -> Iterator[str]:
    """Yield one column; the first row is the header, unless the column is given by its number."""
    width: int | None = None
    for number, row in rows:
        if not row:
            continue
        where = f"{path}, line {number}"
        if width is None:
            width = len(row)
            if field is None or not field.isdecimal():
                column = row.index(choose_field(row, field, where))
                continue
            column = int(field)
        # A row too long is mostly a text with a comma in it and no quotes around: its tail would be lost in silence.
        if len(row) > width or len(row) <= column:
            raise CorpusError(
                f"{where} has {len(row)} columns, where {max(width, column + 1)} were expected.", _REMEDY_FOR_CSV
            )
        yield row[column]


def _read_parquet(path: Path, field: str | None) -> Iterator[str]:
    require_extra("train", "pyarrow")
    import pyarrow
    import pyarrow.parquet

    try:
        with pyarrow.parquet.ParquetFile(path, pre_buffer=False) as file:
            name = choose_field(file.schema_arrow.names, field, str(path))
            for batch in file.iter_batches(batch_size=_PARQUET_BATCH, columns=[name]):
                for value in batch.column(0).to_pylist():
                    yield as_text(value, name, str(path))
    except (pyarrow.ArrowException, UnicodeDecodeError, OSError) as error:
        raise CorpusError(f"{path} cannot be read as Parquet: {error}.", "Fetch or write it again.") from error


_READERS: dict[str, Callable[[Path, str | None], Iterator[str]]] = {
    ".txt": _read_txt,
    ".jsonl": _read_jsonl,
    ".csv": _read_csv,
    ".tsv": _read_tsv,
    ".parquet": _read_parquet,
}
_READERS |= {f"{ending}.gz": reader for ending, reader in _READERS.items() if ending != ".parquet"}

_REMEDY_FOR_CSV = (
    "Every row needs as many columns as the first; in a .csv, put quotes around a text with commas and double the "
    "quotes inside it. Or use a .jsonl file."
)


def _supported() -> str:
    return f"Formats: {', '.join(_READERS)}. Convert or rename the file (JSON lines are .jsonl)."
