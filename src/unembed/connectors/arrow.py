"""Vectors in Arrow's columns of lists: Parquet and Feather files, and whatever else gives record batches."""

import json
from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from unembed.connectors.source import (
    Columns,
    StorageInfo,
    VectorBatch,
    VectorSource,
    choose_column,
    choose_id,
    choose_text,
    unchanged,
)
from unembed.errors import VectorError, first_line, require_extra

_IPC_MAGIC = b"ARROW1"
_FEATHER_1_MAGIC = b"FEA1"
_METADATA = "metadata"
# Without it a whole file, or a whole group of its rows, is kept in memory.
_BUFFER = 1 << 20


def read_parquet(path: Path, columns: Columns, batch_rows: int) -> VectorSource:
    """Read a column of lists of numbers, of fixed size or not, from a Parquet file."""
    require_extra("train", "pyarrow")
    import pyarrow
    import pyarrow.parquet

    try:
        with pyarrow.parquet.ParquetFile(path, pre_buffer=False, buffer_size=_BUFFER) as file:
            schema, count = file.schema_arrow, file.metadata.num_rows
    except (pyarrow.ArrowException, OSError) as error:
        raise VectorError(f"{path} cannot be read as Parquet: {first_line(error)}.", "Write it again.") from error
    chosen, precision = choose_columns(schema, columns, str(path))

    def batches() -> Iterator[Any]:
        with pyarrow.parquet.ParquetFile(path, pre_buffer=False, buffer_size=_BUFFER) as file:
            yield from file.iter_batches(batch_size=batch_rows, columns=needed(chosen, schema))

    records = unchanged([path], str(path), _guarded(batches(), chosen, str(path), "Parquet"))
    return VectorSource(str(path), count, records, storage=StorageInfo("Parquet file", precision=precision))


def read_ipc(path: Path, columns: Columns, batch_rows: int) -> VectorSource:
    """Read a column of lists from a Feather file, or from Arrow's IPC format as a file or as a stream."""
    require_extra("train", "pyarrow")
    return ipc_source([path], columns, batch_rows, str(path), [path])


def ipc_source(
    paths: list[Path], columns: Columns, batch_rows: int, name: str, watched: list[Path], kind: str = "Arrow file"
) -> VectorSource:
    """Read files of one schema, one after the other, through memory maps; ``watched`` must not change meanwhile."""
    import pyarrow

    try:
        schemas, rows = [], 0
        for path in paths:
            with open_ipc(path) as reader:
                schemas.append(reader.schema)
            rows += _count(path)
    except (pyarrow.ArrowException, OSError) as error:
        raise VectorError(f"{name} cannot be read as Arrow: {first_line(error)}.", "Write it again.") from error
    chosen, precision = choose_columns(schemas[0], columns, name)

    def batches() -> Iterator[Any]:
        for path in paths:
            with open_ipc(path) as reader:
                for batch in _batches_of(reader):
                    yield from (batch.slice(start, batch_rows) for start in range(0, len(batch), batch_rows))

    records = unchanged(watched, name, _guarded(batches(), chosen, name, "Arrow"))
    return VectorSource(name, rows, records, storage=StorageInfo(kind, precision=precision))


def open_ipc(path: Path) -> AbstractContextManager[Any]:
    """Open a file in Arrow's IPC format, which begins with a mark, or a stream, which does not."""
    import pyarrow

    with path.open("rb") as file:
        start = file.read(len(_IPC_MAGIC))
    if start.startswith(_FEATHER_1_MAGIC):
        raise VectorError(
            f"{path} is Feather of version 1, which is no longer written.",
            "Write it again: pandas' to_feather gives version 2.",
        )
    open_: Callable[[Any], AbstractContextManager[Any]] = (
        pyarrow.ipc.open_file if start == _IPC_MAGIC else pyarrow.ipc.open_stream
    )
    return open_(pyarrow.memory_map(str(path)))


def _batches_of(reader: Any) -> Iterator[Any]:
    if hasattr(reader, "num_record_batches"):
        return (reader.get_batch(number) for number in range(reader.num_record_batches))
    return iter(reader)


def _count(path: Path) -> int:
    """Return the number of rows; the batches are mapped into memory for it, not read."""
    with open_ipc(path) as reader:
        return sum(map(len, _batches_of(reader)))


def choose_columns(schema: Any, columns: Columns, where: str) -> tuple[Columns, str]:
    """Return which columns of a schema hold vectors, ids and texts, and the precision of the vectors."""
    holding = [field.name for field in schema if is_list_of_numbers(field.type)]
    name = choose_column(holding, columns.vectors, schema.names, where)
    return complete_columns(schema, replace(columns, vectors=name), where), str(schema.field(name).type.value_type)


def is_list_of_numbers(kind: Any) -> bool:
    """Whether a column of this Arrow type can hold vectors."""
    from pyarrow import types

    if not (types.is_list(kind) or types.is_large_list(kind) or types.is_fixed_size_list(kind)):
        return False
    return bool(types.is_floating(kind.value_type) or types.is_integer(kind.value_type))


def complete_columns(schema: Any, columns: Columns, where: str) -> Columns:
    """Return columns with those of a schema that hold texts and ids, if there are any.

    Texts may be in a field of a column of JSON or of structures, as in exports of Pinecone: ``metadata.text``. The name
    ``metadata.`` stands for whichever field has a usual name.
    """
    from pyarrow import types

    texts = [field.name for field in schema if types.is_string(field.type) or types.is_large_string(field.type)]
    names = [field.name for field in schema if field.name in texts or types.is_integer(field.type)]
    nested = [*texts, *(field.name for field in schema if types.is_struct(field.type))]
    ids = choose_id(names, columns.ids, where)
    if columns.texts and columns.texts not in texts and columns.texts.partition(".")[0] in nested:
        return replace(columns, ids=ids)
    found = choose_text(texts, columns.texts, where)
    return replace(columns, ids=ids, texts=found or (f"{_METADATA}." if _METADATA in nested else None))


def needed(columns: Columns, schema: Any) -> list[str]:
    """Return the columns of a schema that have to be read."""
    names = (columns.vectors, columns.texts, columns.ids)
    return [name if name in schema.names else name.partition(".")[0] for name in dict.fromkeys(names) if name]


def _texts(batch: Any, name: str | None) -> list[str | None] | None:
    if name is None:
        return None
    if name in batch.schema.names:
        return list(batch.column(name).to_pylist())
    column, _, field = name.partition(".")
    texts = [_field(value, field) for value in batch.column(column).to_pylist()]
    return texts if any(text is not None for text in texts) else None


def _field(value: Any, field: str) -> str | None:
    if isinstance(value, str):
        try:
            value = json.loads(value)
        except (ValueError, RecursionError):
            return None
    if not isinstance(value, dict):
        return None
    text = value.get(field or choose_text(map(str, value), None, "") or "")
    return text if isinstance(text, str) else None


def _guarded(batches: Iterable[Any], columns: Columns, where: str, form: str) -> Iterator[VectorBatch]:
    import pyarrow

    try:
        yield from read_arrow(batches, columns, where)
    except (pyarrow.ArrowException, OSError) as error:
        raise VectorError(f"{where} cannot be read as {form}: {first_line(error)}.", "Write it again.") from error


def read_arrow(batches: Iterable[Any], columns: Columns, where: str) -> Iterator[VectorBatch]:
    """Turn Arrow's record batches with a column of lists into ours; rows are counted if no column names them.

    A list that is missing becomes a vector that is not finite, as far as the dimension is known by then.
    """
    import pyarrow.compute

    start, width, first = 0, None, 0
    name = columns.vectors
    for batch in batches:
        lists = batch.column(name)
        sizes = pyarrow.compute.list_value_length(lists)
        there = sizes.is_valid().to_numpy(zero_copy_only=False)
        sizes = sizes.fill_null(0).to_numpy(zero_copy_only=False)
        if not len(sizes):
            continue
        if width is None and there.any():
            first = int(np.flatnonzero(there)[0])
            width, first = int(sizes[first]), start + first
        wrong = np.flatnonzero(there & ((sizes != width) | (sizes == 0)))
        if len(wrong):
            raise VectorError(
                f"{where}, row {start + wrong[0]}: '{name}' holds {sizes[wrong[0]]} numbers; row {first} has {width}.",
                "Every vector needs the same dimension.",
            )
        ids = map(str, batch.column(columns.ids).to_pylist()) if columns.ids else range(start, start + len(sizes))
        vectors = lists.flatten().to_numpy(zero_copy_only=False).reshape(int(there.sum()), width or 1)
        if not there.all():
            present = vectors
            vectors = np.full((len(sizes), width or 1), np.nan)
            vectors[there] = present
        yield VectorBatch(list(ids), vectors, _texts(batch, columns.texts))
        start += len(sizes)
