"""Vectors of a FAISS index file, as its ``reconstruct`` gives them back: exact where the index is, else as rounded."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from unembed.connectors.source import Columns, StorageInfo, VectorBatch, VectorSource, unchanged
from unembed.errors import VectorError, require_extra


def read_faiss(location: str, part: str | None, columns: Columns, batch_rows: int) -> VectorSource:
    """Open an index that ``faiss.write_index`` wrote; its lists are mapped into memory where FAISS can."""
    require_extra("faiss", "faiss")
    import faiss

    path = Path(location)
    if part is not None:
        raise VectorError(f"{location} is one index: it has no parts.", "Leave out what follows #.")
    columns.refuse(f"{location} is one index: it has no columns.")
    if not path.is_file():
        raise VectorError(f"There is no file {location}.", "Check the path.")
    try:
        index = faiss.read_index(str(path), faiss.IO_FLAG_MMAP | faiss.IO_FLAG_READ_ONLY)
    except RuntimeError as error:
        reason = str(error).splitlines()[-1] if str(error) else "unknown"
        raise VectorError(
            f"{location} cannot be read as a FAISS index: {reason}", "Give a file that faiss.write_index wrote."
        ) from error
    name = f"faiss:{location}"
    _refuse_fast_scan(index, name)
    records = unchanged([path], name, _read(index, name, batch_rows))
    return VectorSource(name, index.ntotal, records, storage=_storage_info(index))


def _refuse_fast_scan(index: Any, name: str) -> None:
    """Refuse lists of interleaved codes: FAISS reads beyond their end, and the process dies."""
    import faiss

    inner = _unwrap(index)[-1]
    if isinstance(inner, faiss.IndexIVFFastScan):
        raise VectorError(
            f"{name} cannot give its vectors back: {type(inner).__name__} mixes the codes of 32 vectors, and FAISS "
            "crashes when it takes them apart.",
            "Give the vectors that the index was made from, or an index of another kind (IVFPQ without 'fs').",
        )


def _unwrap(index: Any) -> list[Any]:
    """Return an index and what it wraps, from the outside in."""
    import faiss

    indexes = [index]
    while isinstance(indexes[-1], faiss.IndexIDMap | faiss.IndexPreTransform):
        indexes.append(faiss.downcast_index(indexes[-1].index))
    return indexes


def _read(index: Any, name: str, batch_rows: int) -> Iterator[VectorBatch]:
    import faiss

    names: np.ndarray | None = None
    inner = index  # which lives as long as what is around it
    if isinstance(index, faiss.IndexIDMap):
        names, inner = faiss.vector_to_array(index.id_map), faiss.downcast_index(index.index)
    try:
        parts = _lists(inner) if isinstance(inner, faiss.IndexIVF) else _rows(inner, batch_rows)
        for ids, vectors in parts:
            for start in range(0, len(ids), batch_rows):
                chosen = ids[start : start + batch_rows]
                shown = chosen if names is None else names[chosen]
                yield VectorBatch(shown.tolist(), vectors[start : start + batch_rows])
    except RuntimeError as error:
        raise VectorError(
            f"{name} cannot give its vectors back: {type(inner).__name__} does not support reconstruction.",
            "Give the index before it was compressed, or the vectors it was made from.",
        ) from error


def _rows(index: Any, batch_rows: int) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    for start in range(0, index.ntotal, batch_rows):
        count = min(batch_rows, index.ntotal - start)
        yield np.arange(start, start + count), index.reconstruct_n(start, count)


def _lists(index: Any) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Yield the ids and vectors of each inverted list: no table of all ids is needed."""
    import faiss

    for number in range(index.nlist):
        size = index.invlists.list_size(number)
        if not size:
            continue
        pointer = index.invlists.get_ids(number)
        ids = faiss.rev_swig_ptr(pointer, size).copy()
        index.invlists.release_ids(number, pointer)
        vectors = np.empty((size, index.d), dtype=np.float32)
        for offset in range(size):
            index.reconstruct_from_offset(number, offset, faiss.swig_ptr(vectors[offset]))
        yield ids, vectors


def _storage_info(index: Any) -> StorageInfo:
    import faiss

    distance = "inner product" if index.metric_type == faiss.METRIC_INNER_PRODUCT else "l2"
    indexes = _unwrap(index)
    kinds, index = [type(part).__name__ for part in indexes], indexes[-1]
    quantised: str | None = None
    if hasattr(index, "pq"):
        quantised = f"product quantisation, {index.pq.M} codes of {index.pq.nbits} bits"
    elif hasattr(index, "sq"):
        quantised = f"scalar quantisation, {8 * index.sq.code_size // index.d} bits a number"
    elif "Flat" not in kinds[-1]:
        quantised = kinds[-1]
    precision = "float32" if quantised is None else "as quantised"
    return StorageInfo(
        f"FAISS index ({' of '.join(kinds)})", precision=precision, quantised=quantised, distance=distance
    )
