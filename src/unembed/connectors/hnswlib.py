"""Vectors of an hnswlib index file, read from the file itself: hnswlib is not needed, and nothing is searched.

A file begins with the index's settings. They are followed by one record for each element: its links, its vector, and
its label. So the dimension need not be told, and the records can be mapped into memory.
"""

import struct
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import numpy as np

from unembed.connectors.source import Columns, StorageInfo, VectorBatch, VectorSource, unchanged
from unembed.errors import VectorError, from_os_error

_HEADER = struct.Struct("<6QiI3QdQ")
_DELETED_AT, _DELETED = 2, 1


class _Layout(NamedTuple):
    elements: int
    record: int
    """Bytes of an element."""
    vector_at: int
    label_at: int

    @property
    def dim(self) -> int:
        return (self.label_at - self.vector_at) // 4


def read_hnswlib(location: str, part: str | None, columns: Columns, batch_rows: int) -> VectorSource:
    """Open an index that hnswlib's ``save_index`` wrote; elements that are marked as deleted are left out."""
    path, name = Path(location), f"hnswlib:{location}"
    if part is not None:
        raise VectorError(f"{location} is one index: it has no parts.", "Leave out what follows #.")
    columns.refuse(f"{location} is one index: it has no columns.")
    if not path.is_file():
        raise VectorError(f"There is no file {location}.", "Check the path.")
    layout = _read_header(path)
    records = unchanged([path], name, _read(path, layout, batch_rows))
    # The space is not in the file. hnswlib normalises what it compares by cosine before it stores it.
    return VectorSource(name, layout.elements, records, storage=StorageInfo("hnswlib index", precision="float32"))


def _read_header(path: Path) -> _Layout:
    try:
        with path.open("rb") as file:
            start = file.read(_HEADER.size)
        size = path.stat().st_size
    except OSError as error:
        raise from_os_error(error, f"reading {path}") from error
    fields = _HEADER.unpack(start) if len(start) == _HEADER.size else None
    if fields is not None:
        first, _, count, record, label_at, vector_at, _, _, _, links = fields[:10]
        is_index = (
            first == 0
            and vector_at == 4 * links + 4
            and label_at > vector_at
            and (label_at - vector_at) % 4 == 0
            and record == label_at + 8
        )
        if is_index and size >= _HEADER.size + count * record:
            return _Layout(count, record, vector_at, label_at)
        if is_index:
            raise VectorError(f"{path} cannot be read: it ends in the middle of its vectors.", "Write it again.")
    raise VectorError(
        f"{path} cannot be read as an hnswlib index.",
        "Give a file that save_index of hnswlib wrote, of float32 vectors.",
    )


def _read(path: Path, layout: _Layout, batch_rows: int) -> Iterator[VectorBatch]:
    if not layout.elements:
        return
    kind = np.dtype(
        {
            "names": ["mark", "vector", "label"],
            "formats": ["u1", (np.float32, (layout.dim,)), "<u8"],
            "offsets": [_DELETED_AT, layout.vector_at, layout.label_at],
            "itemsize": layout.record,
        }
    )
    elements = np.memmap(path, dtype=kind, mode="r", offset=_HEADER.size, shape=(layout.elements,))
    for start in range(0, layout.elements, batch_rows):
        part = elements[start : start + batch_rows]
        part = part[(part["mark"] & _DELETED) == 0]
        if len(part):
            yield VectorBatch(part["label"].tolist(), np.array(part["vector"]))
