"""What every connector gives: batches of checked vectors. Knows nothing of files or databases."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np

from unembed.errors import VectorError, did_you_mean

# What programs call the field that holds a vector, likeliest first.
_USUAL_NAMES = ("embedding", "vector", "embeddings", "vectors", "values", "emb")
_SHOWN = 5


@dataclass(frozen=True)
class VectorSource:
    """Vectors that are read when they are asked for, once."""

    name: str
    rows: int | None
    """How many there are, where that is known before they are read."""
    batches: Iterator[np.ndarray]
    """(n, d) float32 each: finite, none of them all zeros."""

    def first(self, limit: int) -> "VectorSource":
        """Return the source cut to its first ``limit`` vectors; what comes after them is not read."""
        rows = None if self.rows is None else min(limit, self.rows)
        return replace(self, rows=rows, batches=_first(self.batches, limit))


def check_batch(values: np.ndarray, name: str, unit: str, numbers: Sequence[int]) -> np.ndarray:
    """Return vectors as float32, or say which of them cannot be read.

    Args:
        values: (n, d) numbers of any kind.
        name: where they come from.
        unit: what is counted there, ``row`` or ``line``.
        numbers: (n,) the number of each vector.
    """
    with np.errstate(over="ignore"):
        vectors = values.astype(np.float32)
    for what, bad in (("not finite", ~np.isfinite(vectors).all(1)), ("all zeros", ~vectors.any(1))):
        if bad.any():
            found = [str(numbers[place]) for place in np.flatnonzero(bad).tolist()]
            shown = ", ".join(found[:_SHOWN]) + (", ..." if len(found) > _SHOWN else "")
            raise VectorError(f"{name} has vectors that are {what} ({unit}s {shown}).", f"Remove these {unit}s.")
    return vectors


def batch_lines(vectors: Iterable[tuple[int, list[float]]], name: str, batch_rows: int) -> Iterator[np.ndarray]:
    """Gather numbered vectors into batches, all of one dimension."""
    numbers: list[int] = []
    rows: list[list[float]] = []
    expected: tuple[int, int] | None = None  # how many numbers, and the line that had as many
    for number, row in vectors:
        expected = expected or (len(row), number)
        if len(row) != expected[0]:
            raise VectorError(
                f"{name}, line {number} has {len(row)} numbers; line {expected[1]} has {expected[0]}.",
                "Every vector needs the same dimension.",
            )
        numbers.append(number)
        rows.append(row)
        if len(rows) == batch_rows:
            yield check_batch(np.array(rows), name, "line", numbers)
            numbers, rows = [], []
    if rows:
        yield check_batch(np.array(rows), name, "line", numbers)


def choose_column(holding: Sequence[str], column: str | None, others: Iterable[str], where: str) -> str:
    """Return the field that holds the vectors: the one asked for, else the only one, else one with a usual name.

    Args:
        holding: the fields that hold vectors.
        column: the field asked for, if any.
        others: all fields that there are, for the error.
        where: the place, for the error.
    """
    if column is None:
        usual = [name for wanted in _USUAL_NAMES for name in holding if name.lower() == wanted]
        if len(holding) == 1 or usual:
            return (usual or holding)[0]
        if holding:
            raise VectorError(
                f"{where} has several fields of vectors: {', '.join(holding)}.", "Choose one with --column NAME."
            )
        raise VectorError(
            f"{where} has no field that holds a list of numbers. Its fields: {', '.join(others) or 'none'}.",
            "Give one vector per row, as a list of numbers.",
        )
    if column not in holding:
        fields = list(others)
        if column in fields:
            raise VectorError(f"{where}: the field '{column}' holds no list of numbers.", _choose(holding))
        raise VectorError(f"{where} has no field '{column}': {did_you_mean(column, fields)}", _choose(holding))
    return column


def _choose(holding: Sequence[str]) -> str:
    return f"Fields that do: {', '.join(holding)}." if holding else "Give one vector per row, as a list of numbers."


def _first(batches: Iterator[np.ndarray], limit: int) -> Iterator[np.ndarray]:
    # Looked at before the next batch is asked for: a pipe might not give one.
    while limit > 0 and (batch := next(batches, None)) is not None:
        yield batch[:limit]
        limit -= len(batch)
