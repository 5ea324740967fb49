"""What every connector gives: batches of rows, and how they are stored. Knows nothing of files or databases."""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np

from unembed.errors import VectorError, did_you_mean
from unembed.measures.vectors import find_faults
from unembed.text import printable

Id = str | int
# What programs call the field that holds a vector, likeliest first.
_USUAL_NAMES = ("embedding", "vector", "embeddings", "vectors", "values", "emb")
# What they call the field that names a row.
_ID_NAMES = ("id", "_id", "uuid", "doc_id", "custom_id")
# What they call the field that holds the text.
_TEXT_NAMES = ("text", "document", "content", "page_content", "chunk", "body", "sentence", "passage", "description")
_SHOWN = 5
DAMAGED = "It is damaged, or of a version that is not known. Restore it from a backup, or export its vectors to a file."
"""What to do about a database that cannot be read."""


@dataclass(frozen=True)
class Columns:
    """Which fields of a source hold what; None where that is detected by their usual names."""

    vectors: str | None = None
    ids: str | None = None
    texts: str | None = None

    def refuse(self, why: str) -> None:
        """Raise if the user names a field where there are none to choose from."""
        named = {"column": self.vectors, "id_column": self.ids, "text_column": self.texts}
        if given := [f"`{parameter}`" for parameter, value in named.items() if value is not None]:
            raise VectorError(why, f"Leave out {' and '.join(given)}.")

    def refuse_vectors(self, why: str) -> None:
        """Raise if the user names a field of vectors where there is only one."""
        Columns(self.vectors).refuse(why)


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
    def checked(self) -> Iterator[VectorBatch]:
        """Rows with float32 vectors; raises at a vector that no encoder can have made."""
        for batch in self.records:
            yield replace(batch, vectors=check_batch(batch.vectors, self.name, self.unit, batch.ids))

    @property
    def batches(self) -> Iterator[np.ndarray]:
        """The vectors alone, (n, d) float32 each; raises as ``checked`` does."""
        return (batch.vectors for batch in self.checked)

    def usable(self, skipped: Counter[str]) -> Iterator[VectorBatch]:
        """Yield rows whose vectors an encoder can have made, as float32; count the others by what is wrong."""
        for batch in self.records:
            vectors = _to_float32(batch.vectors)
            bad = np.zeros(len(vectors), dtype=bool)
            for fault, faulty in find_faults(vectors).items():
                if faulty.any():
                    skipped[fault] += int(faulty.sum())
                bad |= faulty
            if not bad.all():
                yield replace(batch, vectors=vectors).take(np.flatnonzero(~bad).tolist())

    def first(self, limit: int) -> "VectorSource":
        """Return the source cut to its first ``limit`` vectors; what comes after them is not read."""
        rows = None if self.rows is None else min(limit, self.rows)
        return replace(self, rows=rows, records=_first(self.records, limit))

    def after(self, count: int, last: Id | None) -> "VectorSource":
        """Return the source without its first ``count`` rows; the last of these must have the id ``last``."""
        rows = None if self.rows is None else max(0, self.rows - count)
        return replace(self, rows=rows, records=rows_after(self.records, count, last, self.name))

    def in_growing_batches(self, most: int) -> "VectorSource":
        """Return the source with batches that double in size up to ``most`` rows: the first ones come soon."""
        return replace(self, records=_grow(self.records, most))


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
    vectors = _to_float32(values)
    for fault, bad in find_faults(vectors).items():
        if bad.any():
            rows = np.flatnonzero(bad).tolist()
            unit = _unit(ids[rows[0]], unit)
            shown = ", ".join(show_id(ids[row]) for row in rows[:_SHOWN]) + (", ..." if len(rows) > _SHOWN else "")
            raise VectorError(f"{name} has vectors that are {fault} ({unit}s {shown}).", f"Remove these {unit}s.")
    return vectors


def _to_float32(values: np.ndarray) -> np.ndarray:
    with np.errstate(over="ignore", under="ignore"):
        return values.astype(np.float32)


def _unit(identifier: Id, unit: str) -> str:
    """Return what an id counts: a row's own name is not the number of its line."""
    return "id" if isinstance(identifier, str) and unit in ("row", "line") else unit


def _named(identifier: Id, unit: str) -> str:
    return f"{_unit(identifier, unit)} {show_id(identifier)}"


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
                    f"{name}, {_named(identifier, unit)} has {len(vector)} numbers; {_named(expected[1], unit)} has "
                    f"{expected[0]}.",
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
                f"{name}, {_named(identifier, unit)} is not a list of numbers.", "Fix or remove it, and run again."
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


def choose_text(fields: Iterable[str], wanted: str | None, where: str) -> str | None:
    """Return the field that holds the texts: the one asked for, else one with a usual name, None if there is none."""
    return _choose_field(fields, wanted, _TEXT_NAMES, "text_column", where)


def choose_id(fields: Iterable[str], wanted: str | None, where: str) -> str | None:
    """Return the field that names the rows: the one asked for, else one with a usual name, None if there is none."""
    return _choose_field(fields, wanted, _ID_NAMES, "id_column", where)


def _choose_field(
    fields: Iterable[str], wanted: str | None, usual: Sequence[str], parameter: str, where: str
) -> str | None:
    names = list(fields)
    if wanted is None:
        by_lower = {name.lower(): name for name in names}
        return next((by_lower[name] for name in usual if name in by_lower), None)
    if wanted not in names:
        raise VectorError(f"{where} has no field '{wanted}'.", f"In `{parameter}`, {did_you_mean(wanted, names)}")
    return wanted


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


def choose_table(part: str | None, tables: Sequence[str], holding: Sequence[str], where: str) -> tuple[str, str | None]:
    """Return the table that ``table``, ``table.column`` or nothing means, and the column if it is named.

    Args:
        part: what was asked for.
        tables: what there is.
        holding: those that hold vectors.
        where: the database, for the error.
    """
    how = "...#TABLE.COLUMN"
    if part is None:
        return choose_part(None, holding, "vector table", where, how=how), None
    if part in tables:
        return part, None
    table, _, column = part.rpartition(".")
    if table in tables:
        return table, column
    return choose_part(table or part, tables, "table", where, how=how), column or None


def _choose(holding: Sequence[str]) -> str:
    return f"Fields that do: {', '.join(holding)}." if holding else "Give one vector per row, as a list of numbers."


def rows_after(records: Iterator[VectorBatch], count: int, last: Id | None, name: str) -> Iterator[VectorBatch]:
    """Pass over the first ``count`` rows of ``name``; the last of these must have the id ``last``."""
    for batch in records:
        passed = min(count, len(batch))
        if count and passed == count and str(batch.ids[passed - 1]) != str(last):
            raise VectorError(
                f"Row {count - 1} of the results is '{show_id(last or '')}', but in {name} it is "
                f"'{show_id(batch.ids[passed - 1])}'.",
                "The results are of another source, or it has changed. Write to a new file.",
            )
        count -= passed
        if passed < len(batch):
            yield batch.take(range(passed, len(batch)))


def _grow(records: Iterator[VectorBatch], most: int) -> Iterator[VectorBatch]:
    pending: list[VectorBatch] = []
    size = 1
    for batch in records:
        pending.append(batch)
        count = sum(map(len, pending))
        if count >= min(size, most):
            yield _join(pending)
            pending, size = [], 2 * count
    if pending:
        yield _join(pending)


def _join(batches: Sequence[VectorBatch]) -> VectorBatch:
    if len(batches) == 1:
        return batches[0]
    texts = [text for batch in batches for text in batch.texts or [None] * len(batch)]
    return VectorBatch(
        [identifier for batch in batches for identifier in batch.ids],
        np.concatenate([batch.vectors for batch in batches]),
        texts if any(text is not None for text in texts) else None,
    )


def _first(records: Iterator[VectorBatch], limit: int) -> Iterator[VectorBatch]:
    # Looked at before the next batch is asked for: a pipe might not give one.
    while limit > 0 and (batch := next(records, None)) is not None:
        yield batch if len(batch) <= limit else batch.take(range(limit))
        limit -= len(batch)
