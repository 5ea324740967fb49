"""What ``unembed invert`` reads: texts, a file of vectors, a database or stdin. Does not know how they are inverted."""

import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from unembed.cli.job import InputBatch
from unembed.cli.results import ResultFile
from unembed.config import BATCHES_AT_ONCE
from unembed.connectors import (
    VectorSource,
    is_vector_file,
    is_vector_uri,
    mask_passwords,
    open_vectors,
    read_vector_lines,
)
from unembed.errors import VectorError
from unembed.text import well_formed

if TYPE_CHECKING:
    from unembed.inverter import Inverter

_STDIN = "-"
# A single word with such an ending is the name of a file, not a sentence.
_DATA_ENDING = re.compile(
    r"\.(?:ann|arrow|bin|db|duckdb|faiss|feather|h5|hdf5|hnsw|index|lance|pickle|pkl|pt|pth|safetensors|sqlite3?|txt|"
    r"usearch|xlsx)",
    re.IGNORECASE,
)


def open_input(
    source: list[str], columns: tuple[str | None, str | None, str | None], limit: int | None, batch_size: int
) -> list[str] | VectorSource:
    """Decide whether the input is texts, a file of vectors, or stdin; ``columns`` hold vectors, ids and texts."""
    if not source and sys.stdin.isatty():
        raise VectorError(
            "There is nothing to invert.", "Give a text, a file of vectors, or vectors on stdin, one per line."
        )
    files = [name for name in source if name == _STDIN or _is_source(name)]
    names = dict(zip(("column", "id_column", "text_column"), columns, strict=True))
    if source and not files:
        return [well_formed(text) for text in source[:limit]]
    if len(source) > 1:
        raise VectorError(
            f"{mask_passwords(files[0])} holds vectors, but other inputs are given too.",
            "Give texts, or one file of vectors alone.",
        )
    if source and source != [_STDIN]:
        vectors = open_vectors(source[0], **names, batch_rows=batch_size)
    else:
        # One by one: the next line may be long in coming.
        vectors = read_vector_lines(_stdin(), name="stdin", **names, batch_rows=1)
    if limit is not None:
        vectors = vectors.first(limit)
    return vectors.in_growing_batches(BATCHES_AT_ONCE * batch_size)


def skip_finished(given: list[str] | VectorSource, results: ResultFile | None) -> list[str] | VectorSource:
    """Leave out what an earlier run has written to the file of results."""
    if results is None or not results.rows:
        return given
    return given[results.rows :] if isinstance(given, list) else given.after(results.rows, results.last_id)


def read_batches(source: VectorSource, inverter: "Inverter") -> Iterator[InputBatch]:
    """Read vectors; say once if they were scaled for storage."""
    said = False
    for batch in map(InputBatch.of, source.checked):
        note = None if said else inverter.describe_scale(batch.vectors)
        if note:
            said = True
            typer.echo(note, err=True)
        yield batch


def _is_source(name: str) -> bool:
    """Whether a name is meant as a file, a folder or a database, even if it is not there; else it is a text."""
    path = Path(name)
    is_one_word = not any(character.isspace() for character in name)
    try:
        return (
            is_vector_uri(name)
            or is_vector_file(path)
            or path.is_dir()
            or (bool(path.suffix) and path.is_file())
            or ("/" in name and path.exists())
            or (is_one_word and bool(_DATA_ENDING.fullmatch(path.suffix) or name.startswith(("./", "../", "/", "~/"))))
        )
    except OSError:  # too long for a name, so it is a text
        return False


def _stdin() -> Iterator[str]:
    try:
        yield from sys.stdin
    except UnicodeDecodeError as error:
        raise VectorError(
            "stdin is not text.", "Pipe in lines of numbers, or give a binary file by its name."
        ) from error
