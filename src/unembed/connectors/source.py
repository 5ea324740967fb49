"""What every connector gives: batches of rows, and how they are stored. Knows nothing of files or databases."""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np

from unembed.errors import VectorError, did_you_mean
from unembed.text import printable

Id = str | int
# What programs call the field that holds a vector, likeliest first.
_USUAL_NAMES = ("embedding", "vector", "embeddings", "vectors", "values", "emb")
# What they call the field that holds the text.
_TEXT_NAMES = ("text", "document", "content", "page_content", "chunk", "body", "sentence", "passage", "description")
_SHOWN = 5
DAMAGED = "It is damaged, or of a version that is not known. Restore it from a backup, or export its vectors to a file."
"""What to do about a database that cannot be read."""


@dataclass(frozen=True)
class VectorBatch:
    """Some rows."""

    ids: Sequence[Id]
    """What the source calls them; in a file, the number of the row or line."""
    vectors: np.ndarray
    """(n, d)."""
    texts: Sequence[str | None] | None = None
    """What the vectors were made from, where the source holds it."""

    def __len__(self) -> int:
        return len(self.vectors)

    def take(self, rows: Sequence[int]) -> "VectorBatch":
        """Return some of the rows."""
        texts = None if self.texts is None else [self.texts[row] for row in rows]
        return VectorBatch([self.ids[row] for row in rows], self.vectors[list(rows)], texts)


@dataclass(frozen=True)
class StorageInfo:
    """How a source stores its vectors, and what it says about the encoder that made them."""

    kind: str
    """For example ``Chroma collection``."""
    precision: str = "unknown"
    """Of each number: ``float32``, ``float16``, ``8 bits``."""
    quantised: str | None = None
    """How vectors are rounded beyond that, if they are."""
    distance: str | None = None
    """What the source compares vectors by."""
    encoder: str | None = None
    """The encoder's name, if the source knows it."""
    encoder_said_by: str = ""
    """Where the source says so."""


@dataclass(frozen=True)
class VectorSource:
    """Vectors that are read when they are asked for, once, either as ``batches`` or as ``usable``."""

    name: str
    rows: int | None
    """How many there are, where that is known before they are read."""
    records: Iterator[VectorBatch]
    """As they are stored, all of one dimension, not looked at."""
    unit: str = "row"
    """What the ids count."""
    storage: StorageInfo = field(default_factory=lambda: StorageInfo("file"))

    @property
    def batches(self) -> Iterator[np.ndarray]:
        """(n, d) float32 each; raises at a vector that is not finite or all zeros."""
        return (check_batch(batch.vectors, self.name, self.unit, batch.ids) for batch in self.records)

    def usable(self, skipped: Counter[str]) -> Iterator[VectorBatch]:
        """Yield rows whose vectors, as float32, are finite and not all zeros; count the others by what is wrong."""
        for batch in self.records:
            vectors, faults = _examine(batch.vectors)
            bad = np.zeros(len(vectors), dtype=bool)
            for fault, faulty in faults:
                skipped[fault] += int((faulty & ~bad).sum())
                bad |= faulty
            if not bad.all():
                yield replace(batch, vectors=vectors).take(np.flatnonzero(~bad).tolist())

    def first(self, limit: int) -> "VectorSource":
        """Return the source cut to its first ``limit`` vectors; what comes after them is not read."""
        rows = None if self.rows is None else min(limit, self.rows)
        return replace(self, rows=rows, records=_first(self.records, limit))


def show_id(identifier: Id) -> str:
    """Return an id that is safe to print: its author must not control the reader's terminal."""
    return printable(str(identifier))


def check_batch(values: np.ndarray, name: str, unit: str, ids: Sequence[Id]) -> np.ndarray:
    """Return vectors as float32, or say which of them cannot be read.

    Args:
        values: (n, d) numbers of any kind.
        name: where they come from.
        unit: what is counted there, ``row`` or ``line``.
        ids: (n,) what each vector is called.
    """
    vectors, faults = _examine(values)
    for fault, bad in faults:
        if bad.any():
            rows = np.flatnonzero(bad).tolist()
            shown = ", ".join(show_id(ids[row]) for row in rows[:_SHOWN]) + (", ..." if len(rows) > _SHOWN else "")
            raise VectorError(f"{name} has vectors that are {fault} ({unit}s {shown}).", f"Remove these {unit}s.")
    return vectors


def _examine(values: np.ndarray) -> tuple[np.ndarray, list[tuple[str, np.ndarray]]]:
    """Return vectors as float32, and which of them are unusable for which reason."""
    with np.errstate(over="ignore"):
        vectors = values.astype(np.float32)
    finite, something = np.isfinite(vectors).all(axis=1), vectors.any(axis=1)
    return vectors, [("not finite", np.logical_not(finite)), ("all zeros", np.logical_not(something))]


Row = tuple[Id, Sequence[float] | None, str | None]
"""An id, a vector (None where it is missing) and a text (None where there is none)."""


def gather(rows: Iterable[Row], name: str, unit: str, batch_rows: int) -> Iterator[VectorBatch]:
    """Gather rows into batches, all of one dimension; a missing vector becomes one that is not finite."""
    pending: list[Row] = []
    expected: tuple[int, Id] | None = None  # how many numbers, and the row that had as many
    for row in rows:
        identifier, vector, _ = row
        if vector is not None:
            expected = expected or (len(vector), identifier)
            if len(vector) != expected[0]:
                raise VectorError(
                    f"{name}, {unit} {show_id(identifier)} has {len(vector)} numbers; {unit} {show_id(expected[1])} "
                    f"has {expected[0]}.",
                    "Every vector needs the same dimension.",
                )
        pending.append(row)
        if len(pending) >= batch_rows and expected:
            yield _to_batch(pending, expected[0], name, unit)
            pending = []
    if pending:
        yield _to_batch(pending, expected[0] if expected else 1, name, unit)


def _to_batch(rows: Sequence[Row], width: int, name: str, unit: str) -> VectorBatch:
    ids, texts = [identifier for identifier, *_ in rows], [text for *_, text in rows]
    missing = [np.nan] * width
    vectors = np.empty((len(rows), width))
    for index, (identifier, vector, _) in enumerate(rows):
        try:
            vectors[index] = missing if vector is None else vector
        except (ValueError, TypeError, OverflowError) as error:
            raise VectorError(
                f"{name}, {unit} {show_id(identifier)} is not a list of numbers.", "Fix or remove it, and run again."
            ) from error
    return VectorBatch(ids, vectors, texts if any(text is not None for text in texts) else None)


def unchanged(paths: Sequence[Path], name: str, records: Iterator[VectorBatch]) -> Iterator[VectorBatch]:
    """Pass batches through; raise at their end if the files they come from have changed since the source was opened."""
    before = fingerprint(paths)

    def watched() -> Iterator[VectorBatch]:
        yield from records
        if fingerprint(paths) != before:
            raise VectorError(
                f"{name} changed while it was read.", "Stop what writes to it, or give a copy, and run again."
            )

    return watched()


def fingerprint(paths: Sequence[Path]) -> list[tuple[str, int, int]]:
    """Return names, sizes and modification times of files, and of everything in folders."""
    facts = []
    for path in paths:
        for file in [path] if path.is_file() else sorted(path.rglob("*")):
            try:
                status = file.stat()
            except OSError:  # gone since it was listed: another fingerprint
                continue
            facts.append((str(file), status.st_size, status.st_mtime_ns))
    return facts


def choose_column(holding: Sequence[str], column: str | None, others: Iterable[str], where: str) -> str:
    """Return the field that holds the vectors: the one asked for, else the only one, else one with a usual name.

    Args:
        holding: the fields that hold vectors.
        column: the field asked for, if any.
        others: all fields that there are, for the error.
        where: what they are in, for the error.
    """
    if column is None:
        usual = [name for wanted in _USUAL_NAMES for name in holding if name.lower() == wanted]
        if len(holding) == 1 or usual:
            return (usual or holding)[0]
        if holding:
            raise VectorError(
                f"{where} has several fields of vectors: {', '.join(holding)}.", "Choose one: `column=NAME`."
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


def choose_text(fields: Iterable[str]) -> str | None:
    """Return the field that holds the texts by its usual name, None where there is no such field."""
    names = {name.lower(): name for name in fields}
    return next((names[wanted] for wanted in _TEXT_NAMES if wanted in names), None)


def choose_part(
    wanted: str | None, existing: Sequence[str], kind: str, where: str, *, how: str = "ADDRESS#NAME"
) -> str:
    """Return the collection or table asked for, or the only one.

    Args:
        wanted: what was asked for.
        existing: what there is.
        kind: what it is called: ``collection``, ``table``.
        where: the database, for the error.
        how: how it is asked for.
    """
    if not existing:
        raise VectorError(f"{where} has no {kind}.", "Check the path.")
    if wanted is None and len(existing) > 1:
        raise VectorError(f"{where} has several {kind}s: {', '.join(sorted(existing))}.", f"Choose one: {how}")
    if wanted is not None and wanted not in existing:
        raise VectorError(f"{where} has no {kind} '{wanted}'.", f"In {how}, {did_you_mean(wanted, existing)}")
    return wanted or existing[0]


def _choose(holding: Sequence[str]) -> str:
    return f"Fields that do: {', '.join(holding)}." if holding else "Give one vector per row, as a list of numbers."


def _first(records: Iterator[VectorBatch], limit: int) -> Iterator[VectorBatch]:
    # Looked at before the next batch is asked for: a pipe might not give one.
    while limit > 0 and (batch := next(records, None)) is not None:
        yield batch if len(batch) <= limit else batch.take(range(limit))
        limit -= len(batch)
