"""Vectors in NumPy's own files. Never unpickles anything."""

import zipfile
import zlib
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import IO, NamedTuple

import numpy as np

from unembed.connectors.source import Columns, StorageInfo, VectorBatch, VectorSource, unchanged
from unembed.errors import VectorError, did_you_mean, first_line

_REMEDY = "Give a .npy file of shape (n, d), written by numpy.save."
# RuntimeError: an archive with a password, or packed in a way that Python does not know.
_DAMAGE = (OSError, ValueError, EOFError, RuntimeError, OverflowError, MemoryError, zlib.error, zipfile.BadZipFile)


class _Header(NamedTuple):
    shape: tuple[int, ...]
    by_columns: bool
    dtype: np.dtype


def read_npy(path: Path, columns: Columns, batch_rows: int) -> VectorSource:
    """Read a ``.npy`` file of shape (n, d), or (d,) for a single vector, through a memory map."""
    columns.refuse(f"{path} is one array: it has no columns.")
    try:
        array = np.load(path, mmap_mode="r", allow_pickle=False)
    except _DAMAGE as error:
        raise VectorError(f"Cannot read {path}: {first_line(error)}.", _REMEDY) from error
    if not isinstance(array, np.ndarray):
        array.close()
        raise VectorError(f"{path} is an archive of arrays.", "Name it .npz, or save the one array with numpy.save.")
    _refuse(_Header(array.shape, False, array.dtype), str(path))
    array = array[None] if array.ndim == 1 else array
    starts = range(0, len(array), batch_rows)
    return _source(path, len(array), array.dtype, (array[start : start + batch_rows] for start in starts))


def read_npz(path: Path, columns: Columns, batch_rows: int) -> VectorSource:
    """Read the one array of shape (n, d) in a ``.npz`` archive, or the one asked for, as it is unpacked."""
    try:
        with zipfile.ZipFile(path) as archive:
            headers = {name.removesuffix(".npy"): _header_in(archive, name) for name in archive.namelist()}
    except _DAMAGE as error:
        raise VectorError(
            f"Cannot read {path}: {first_line(error)}.", "Give a .npz file written by numpy.savez."
        ) from error
    replace(columns, vectors=None).refuse(f"{path} holds arrays of numbers alone.")
    name = _choose(headers, columns.vectors, path)
    header = headers[name]
    _refuse(header, f"{path}, array '{name}'")
    rows = header.shape[0] if len(header.shape) == 2 else 1
    return _source(path, rows, header.dtype, _unpack(path, name, header, rows, batch_rows))


def _source(path: Path, rows: int, dtype: np.dtype, parts: Iterator[np.ndarray]) -> VectorSource:
    def records() -> Iterator[VectorBatch]:
        start = 0
        for part in parts:
            yield VectorBatch(range(start, start + len(part)), part)
            start += len(part)

    storage = StorageInfo("NumPy file", precision=str(dtype))
    return VectorSource(str(path), rows, unchanged([path], str(path), records()), storage=storage)


def _unpack(path: Path, name: str, header: _Header, rows: int, batch_rows: int) -> Iterator[np.ndarray]:
    width = header.shape[-1]
    try:
        if header.by_columns:
            # No row is complete before all has been read.
            with np.load(path, allow_pickle=False) as arrays:
                array = arrays[name].reshape(rows, width)
            yield from (array[start : start + batch_rows] for start in range(0, rows, batch_rows))
            return
        with zipfile.ZipFile(path) as archive, archive.open(f"{name}.npy") as file:
            _read_header(file)
            for start in range(0, rows, batch_rows):
                count = min(batch_rows, rows - start) * width
                yield np.frombuffer(file.read(count * header.dtype.itemsize), header.dtype, count).reshape(-1, width)
    except _DAMAGE as error:
        raise VectorError(f"{path} is damaged: {first_line(error)}.", "Write it again.") from error


def _header_in(archive: zipfile.ZipFile, name: str) -> _Header:
    with archive.open(name) as file:
        return _read_header(file)


def _read_header(file: IO[bytes]) -> _Header:
    version = np.lib.format.read_magic(file)
    read = np.lib.format.read_array_header_1_0 if version == (1, 0) else np.lib.format.read_array_header_2_0
    return _Header(*read(file))


def _choose(headers: dict[str, _Header], column: str | None, path: Path) -> str:
    tables = [name for name, header in headers.items() if len(header.shape) == 2]
    if column is not None and column not in headers:
        raise VectorError(f"{path} has no array '{column}'.", f"In `column`, {did_you_mean(column, headers)}")
    if column is None and len(tables) != 1:
        shapes = ", ".join(f"{name} {header.shape}" for name, header in headers.items()) or "none"
        raise VectorError(
            f"{path} has {len(tables) or 'no'} arrays of shape (n, d). Its arrays: {shapes}.",
            "Choose one: `column=NAME`.",
        )
    return column or tables[0]


def _refuse(header: _Header, where: str) -> None:
    if not (np.issubdtype(header.dtype, np.floating) or np.issubdtype(header.dtype, np.integer)):
        raise VectorError(f"{where} holds {header.dtype}, which are not numbers.", "Give an array of shape (n, d).")
    if len(header.shape) not in (1, 2) or not header.shape[-1]:
        raise VectorError(f"{where} has the shape {header.shape}.", "Give an array of shape (n, d).")
