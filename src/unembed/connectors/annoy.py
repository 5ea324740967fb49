"""Vectors of an Annoy index file, read from the file itself: Annoy is not needed, and nothing is searched.

A file is a row of nodes of one size, and does not say which: it depends on the dimension and the metric, which must be
named. The items come first; the last node is a root, which knows how many there are.
"""

from collections.abc import Iterator
from pathlib import Path

import numpy as np

from unembed.connectors.source import Columns, StorageInfo, VectorBatch, VectorSource, unchanged
from unembed.errors import VectorError, did_you_mean, from_os_error

# Bytes before the vector in a node.
_METRICS = {"angular": 12, "euclidean": 16, "manhattan": 16, "dot": 16}
_HOW = "Say them after #: annoy:FILE#384 for angular, annoy:FILE#384.euclidean, .manhattan or .dot otherwise."


def read_annoy(location: str, part: str | None, columns: Columns, batch_rows: int) -> VectorSource:
    """Open an index that Annoy's ``save`` wrote; ``part`` is ``DIMENSION`` or ``DIMENSION.METRIC``."""
    path, name = Path(location), f"annoy:{location}"
    columns.refuse(f"{location} is one index: it has no columns.")
    if not path.is_file():
        raise VectorError(f"There is no file {location}.", "Check the path.")
    if part is None:
        raise VectorError(f"{location} does not say the dimension and the metric of its vectors.", _HOW)
    dimension, _, metric = part.partition(".")
    metric = metric or "angular"
    if metric not in _METRICS:
        raise VectorError(f"'{metric}' is no metric of Annoy: {did_you_mean(metric, _METRICS)}", _HOW)
    if not dimension.isdecimal() or not int(dimension):
        raise VectorError(f"'{dimension}' is no dimension.", _HOW)
    nodes = _map(path, int(dimension), metric)
    count = int(nodes["below"][-1])
    records = unchanged([path], name, _read(nodes, count, batch_rows))
    storage = StorageInfo(f"Annoy index ({metric})", precision="float32", distance=metric)
    return VectorSource(f"{name}#{part}", count, records, storage=storage)


def _map(path: Path, dimension: int, metric: str) -> np.ndarray:
    start = _METRICS[metric]
    kind = np.dtype(
        {
            "names": ["below", "vector"],
            "formats": ["<i4", (np.float32, (dimension,))],
            "offsets": [0, start],
            "itemsize": start + 4 * dimension,
        }
    )
    try:
        size = path.stat().st_size
        if size and size % kind.itemsize == 0:
            nodes = np.memmap(path, dtype=kind, mode="r")
            count = int(nodes["below"][-1])
            # The last node is a root, and items have nothing below them but themselves.
            if 0 < count < len(nodes) and (np.isin(nodes["below"][: min(count, 4096)], (0, 1))).all():
                return nodes
    except OSError as error:
        raise from_os_error(error, f"reading {path}") from error
    raise VectorError(f"{path} cannot be read as an Annoy index of {dimension} numbers, {metric}.", _HOW)


def _read(nodes: np.ndarray, count: int, batch_rows: int) -> Iterator[VectorBatch]:
    for start in range(0, count, batch_rows):
        part = nodes[start : min(start + batch_rows, count)]
        rows = np.flatnonzero(part["below"] == 1)  # the others were never added
        if len(rows):
            yield VectorBatch((start + rows).tolist(), np.array(part["vector"][rows]))
