"""Vectors of a USearch index file, which is mapped into memory."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from unembed.connectors.source import Columns, StorageInfo, VectorBatch, VectorSource, unchanged
from unembed.errors import VectorError, first_line, require_extra

_PRECISIONS = {"f64": "float64", "f32": "float32", "f16": "float16", "bf16": "bfloat16", "i8": "int8"}


def read_usearch(location: str, part: str | None, columns: Columns, batch_rows: int) -> VectorSource:
    """Open an index that USearch's ``save`` wrote."""
    require_extra("usearch", "usearch")
    from usearch.index import Index

    path, name = Path(location), f"usearch:{location}"
    if part is not None:
        raise VectorError(f"{location} is one index: it has no parts.", "Leave out what follows #.")
    columns.refuse(f"{location} is one index: it has no columns.")
    if not path.is_file():
        raise VectorError(f"There is no file {location}.", "Check the path.")
    remedy = "Give a file that save of USearch wrote."
    try:
        facts = Index.metadata(str(path))
        if not facts:
            raise VectorError(f"{location} cannot be read as a USearch index.", remedy)
        kind = facts["kind_scalar"].name.lower()
        if kind not in _PRECISIONS:
            raise VectorError(
                f"{name} holds vectors of {kind}, not of numbers.", "Give the vectors that the index was made from."
            )
        index = Index.restore(str(path), view=True)
    except (RuntimeError, ValueError, KeyError) as error:
        raise VectorError(f"{location} cannot be read as a USearch index: {first_line(error)}.", remedy) from error
    if index is None:
        raise VectorError(f"{location} cannot be read as a USearch index.", remedy)
    storage = StorageInfo(
        "USearch index",
        precision=_PRECISIONS[kind],
        quantised="whole numbers of 8 bits" if kind == "i8" else None,
        distance=facts["kind_metric"].name.lower(),
    )
    return VectorSource(name, len(index), unchanged([path], name, _read(index, batch_rows)), storage=storage)


def _read(index: Any, batch_rows: int) -> Iterator[VectorBatch]:
    # All keys at once, 8 bytes each: asking for a part of them begins at the first one each time.
    keys = np.unique(index.keys[:])
    for start in range(0, len(keys), batch_rows):
        part = keys[start : start + batch_rows]
        # A key of an index with several vectors for each has a matrix, any other a row.
        found = [np.atleast_2d(vectors) for vectors in index.get(part)]
        ids = [key for key, vectors in zip(part.tolist(), found, strict=True) for _ in vectors]
        yield VectorBatch(ids, np.concatenate(found))
