"""Files of vectors: which reader for which name."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from unembed.connectors.arrays import read_npy, read_npz
from unembed.connectors.arrow import read_ipc, read_parquet
from unembed.connectors.documents import read_json
from unembed.connectors.lines import read_file_lines, read_vector_lines
from unembed.connectors.source import Columns, VectorSource, unchanged
from unembed.connectors.tables import read_csv, read_tsv
from unembed.corpus.lines import extension
from unembed.errors import VectorError, from_os_error


def read_vectors(
    source: str | Path,
    *,
    column: str | None = None,
    id_column: str | None = None,
    text_column: str | None = None,
    batch_rows: int = 1024,
) -> VectorSource:
    """Open a file of vectors, which are read batch by batch, whatever the file's size.

    What can be known at once (a missing file, an unknown format, a column that is not there) is raised at once; what
    shows only while reading (a bad line) is raised then.

    Args:
        source: ``.npy``, ``.npz``, ``.parquet``, ``.feather``, ``.arrow``; ``.csv``, ``.tsv``, ``.jsonl``,
            ``.json``, each also with ``.gz``.
        column: the array, column or field that holds the vectors, where there are several.
        id_column: the field that names each row, if it is not called ``id`` or the like.
        text_column: the field that holds the texts, if it is not called ``text`` or the like.
        batch_rows: vectors per batch.

    Raises:
        VectorError: the file cannot be read, with what to do about it.
    """
    path = Path(source)
    try:
        if not path.exists():
            raise VectorError(f"There is no file {path}.", "Check the path.")
    except OSError as error:
        raise from_os_error(error, f"reading {path}") from error
    if path.is_dir() or not is_vector_file(path):
        raise VectorError(
            f"{path} is {'a folder' if path.is_dir() else 'a file of an unknown format'}.",
            f"Give a file of vectors: {', '.join(_READERS)}. Nothing is ever unpickled.",
        )
    return _READERS[extension(path)](path, Columns(column, id_column, text_column), batch_rows)


def is_vector_file(name: str | Path) -> bool:
    """Whether a name has the ending of a file of vectors; the file need not exist."""
    return extension(Path(name)) in _READERS


def _read_jsonl(path: Path, columns: Columns, batch_rows: int) -> VectorSource:
    source = read_vector_lines(
        read_file_lines(path),
        name=str(path),
        column=columns.vectors,
        id_column=columns.ids,
        text_column=columns.texts,
        batch_rows=batch_rows,
    )
    return replace(source, records=unchanged([path], str(path), source.records))


Reader = Callable[[Path, Columns, int], VectorSource]
_READERS: dict[str, Reader] = {
    ".npy": read_npy,
    ".npz": read_npz,
    ".parquet": read_parquet,
    ".feather": read_ipc,
    ".arrow": read_ipc,
    ".csv": read_csv,
    ".tsv": read_tsv,
    ".jsonl": _read_jsonl,
    ".json": read_json,
}
_READERS |= {f"{ending}.gz": _READERS[ending] for ending in (".csv", ".tsv", ".jsonl", ".json")}
