"""Files of vectors: which reader for which name."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from unembed.connectors.arrays import read_npy, read_npz
from unembed.connectors.lines import read_file_lines, read_vector_lines
from unembed.connectors.source import VectorSource, unchanged
from unembed.connectors.tables import read_csv, read_parquet, read_tsv
from unembed.corpus.lines import extension
from unembed.errors import VectorError, from_os_error


def read_vectors(source: str | Path, *, column: str | None = None, batch_rows: int = 1024) -> VectorSource:
    """Open a file of vectors, which are read batch by batch, whatever the file's size.

    What can be known at once (a missing file, an unknown format, a column that is not there) is raised at once; what
    shows only while reading (a bad line) is raised then.

    Args:
        source: ``.npy``, ``.npz``, ``.parquet``; ``.csv``, ``.tsv``, ``.jsonl``, each also with ``.gz``.
        column: the array, column or field that holds the vectors, where there are several.
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
            f"Give a file of vectors: {', '.join(_READERS)}.",
        )
    return _READERS[extension(path)](path, column, batch_rows)


def is_vector_file(name: str | Path) -> bool:
    """Whether a name has the ending of a file of vectors; the file need not exist."""
    return extension(Path(name)) in _READERS


def _read_jsonl(path: Path, column: str | None, batch_rows: int) -> VectorSource:
    source = read_vector_lines(read_file_lines(path), name=str(path), column=column, batch_rows=batch_rows)
    return replace(source, records=unchanged([path], str(path), source.records))


Reader = Callable[[Path, str | None, int], VectorSource]
_READERS: dict[str, Reader] = {
    ".npy": read_npy,
    ".npz": read_npz,
    ".parquet": read_parquet,
    ".csv": read_csv,
    ".tsv": read_tsv,
    ".jsonl": _read_jsonl,
}
_READERS |= {f"{ending}.gz": _READERS[ending] for ending in (".csv", ".tsv", ".jsonl")}
