"""A text file, plain or gzipped, as decoded lines. Knows nothing of what the lines mean."""

import gzip
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import IO, cast

from unembed.errors import CorpusError, from_os_error

# A file without line ends would otherwise be read into memory whole.
_LONGEST_LINE = 1 << 26

# Python's own limit of 128 KiB for a field of a .csv is below what a long document or a long vector needs.
LONGEST_CSV_FIELD = 1 << 24


def extension(path: Path) -> str:
    """Return how a file's name ends, in small letters; of a compressed one, both parts: ``.csv.gz``."""
    suffixes = path.suffixes if path.suffix.lower() == ".gz" else path.suffixes[-1:]
    return "".join(suffixes[-2:]).lower()


def read_lines(path: Path) -> Iterator[str]:
    """Yield the lines of a UTF-8 file with their line ends, one at a time.

    Args:
        path: the file; it is unpacked on the way when its name ends in ``.gz``.

    Raises:
        CorpusError: the file is missing, truncated, or not UTF-8 text.
    """
    try:
        with _open(path) as file:
            for number, line in enumerate(iter(lambda: file.readline(_LONGEST_LINE), b""), start=1):
                yield _decode(line, path, number)
    except (EOFError, gzip.BadGzipFile, zlib.error) as error:
        raise CorpusError(
            f"{path} is truncated or not a gzip file.", f"Fetch or pack it again; to check it, run: gzip -t {path}"
        ) from error
    except OSError as error:
        raise from_os_error(error, f"reading {path}") from error


def _open(path: Path) -> IO[bytes]:
    return cast(IO[bytes], gzip.open(path)) if path.suffix.lower() == ".gz" else path.open("rb")


def _decode(line: bytes, path: Path, number: int) -> str:
    if len(line) == _LONGEST_LINE:
        raise CorpusError(
            f"{path}, line {number} is longer than {_LONGEST_LINE >> 20} MiB.", "Put one text a line, then try again."
        )
    if b"\0" in line:
        raise CorpusError(f"{path} is not text: line {number} holds a NUL byte.", _REMEDY_FOR_BYTES)
    try:
        # Spreadsheets put a byte-order mark first; left in place, it would become part of the first column's name.
        return line.decode("utf-8-sig" if number == 1 else "utf-8")
    except UnicodeDecodeError as error:
        raise CorpusError(f"{path} is not UTF-8 text: line {number} cannot be decoded.", _REMEDY_FOR_BYTES) from error


_REMEDY_FOR_BYTES = (
    "Give a text file, in UTF-8. To convert one, name its encoding: iconv -f windows-1252 -t utf-8 old.txt > new.txt"
)
