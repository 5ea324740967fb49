"""Vectors that are in memory already: arrays, data frames, Arrow tables and Hugging Face datasets."""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from unembed.connectors.arrow import choose_columns, read_arrow
from unembed.connectors.source import (
    Columns,
    Id,
    Row,
    StorageInfo,
    VectorBatch,
    VectorSource,
    choose_column,
    choose_id,
    choose_text,
    gather,
)
from unembed.connectors.uri import open_vectors
from unembed.errors import VectorError

_KNOWN = (
    "Give an address, a path, an array of shape (n, d), a pandas data frame, an Arrow table or a Hugging Face dataset."
)


def vectors_of(
    source: Any,
    *,
    texts: Sequence[str | None] | None = None,
    column: str | None = None,
    id_column: str | None = None,
    text_column: str | None = None,
    batch_rows: int = 1024,
) -> VectorSource:
    """Return vectors as a source, wherever they are.

    Args:
        source: what :func:`open_vectors` takes; or an array (n, d), a pandas data frame, an Arrow table or a Hugging
            Face dataset with a column of lists.
        texts: (n,) what the vectors of an array were made from, if that is known.
        column: the column that holds the vectors, where there are several.
        id_column: the column that names each row, if it is not called ``id`` or the like.
        text_column: the column that holds the texts, if it is not called ``text`` or the like.
        batch_rows: vectors per batch.
    """
    columns = Columns(column, id_column, text_column)
    package = type(source).__module__.partition(".")[0]
    if texts is not None and (isinstance(source, str | Path | VectorSource) or hasattr(source, "columns")):
        raise VectorError("`texts` are for an array of vectors.", "Leave them out: the source has its own.")
    if isinstance(source, VectorSource):
        columns.refuse("The source is open, and its columns are chosen.")
        return source
    if isinstance(source, str | Path):
        return open_vectors(
            str(source), column=column, id_column=id_column, text_column=text_column, batch_rows=batch_rows
        )
    if package == "pandas" and hasattr(source, "columns"):
        return _from_frame(source, columns, batch_rows)
    if package == "pyarrow" and hasattr(source, "schema"):
        return _from_arrow("Arrow table", source.schema, len(source), source.to_batches, columns, batch_rows)
    if package == "datasets" and hasattr(source, "with_format") and hasattr(source, "features"):
        return _from_dataset(source, columns, batch_rows)
    columns.refuse("An array has no columns.")
    return _from_array(source, texts, batch_rows)


def _from_array(source: Any, texts: Sequence[str | None] | None, batch_rows: int) -> VectorSource:
    if hasattr(source, "detach"):  # a tensor
        source = source.detach().cpu()
        source = (source.float() if str(source.dtype) == "torch.bfloat16" else source).numpy()
    try:
        array = np.asarray(source)
    except ValueError:  # lists of different lengths
        array = np.empty(0, dtype=object)
    if array.ndim != 2 or not array.shape[1] or array.dtype.kind not in "fiu":
        raise VectorError(f"A {type(source).__name__} is given that is no array of vectors.", _KNOWN)
    if texts is not None and len(texts) != len(array):
        raise VectorError(f"There are {len(array):,} vectors and {len(texts):,} texts.", "Give a text for each vector.")

    def records() -> Iterator[VectorBatch]:
        for start in range(0, len(array), batch_rows):
            part = array[start : start + batch_rows]
            said = None if texts is None else list(texts[start : start + len(part)])
            yield VectorBatch(range(start, start + len(part)), part, said)

    storage = StorageInfo("array", precision=str(array.dtype))
    return VectorSource("an array", len(array), records(), storage=storage)


def _from_frame(frame: Any, columns: Columns, batch_rows: int) -> VectorSource:
    where = "the data frame"
    names = [str(name) for name in frame.columns]
    first = {name: _first_value(frame[label]) for name, label in zip(names, frame.columns, strict=True)}
    labels = dict(zip(names, frame.columns, strict=True))
    vectors = choose_column([name for name, value in first.items() if _is_vector(value)], columns.vectors, names, where)
    texts = choose_text([name for name, value in first.items() if isinstance(value, str)], columns.texts, where)
    ids = choose_id(names, columns.ids, where)

    def rows() -> Iterator[Row]:
        values, said = frame[labels[vectors]], frame[labels[texts]] if texts else None
        named = frame[labels[ids]] if ids else frame.index
        for number, (name, value) in enumerate(zip(named, values, strict=True)):
            text = None if said is None else said.iloc[number]
            yield _id(name), value if _is_vector(value) else None, text if isinstance(text, str) else None

    storage = StorageInfo("pandas data frame", precision=_precision(first[vectors]))
    return VectorSource(where, len(frame), gather(rows(), where, "row", batch_rows), storage=storage)


def _from_dataset(dataset: Any, columns: Columns, batch_rows: int) -> VectorSource:
    arrow = dataset.with_format("arrow")

    def batches(_size: int) -> Iterator[Any]:
        for table in arrow.iter(batch_size=batch_rows):
            yield from table.combine_chunks().to_batches()

    schema = dataset.features.arrow_schema
    return _from_arrow("Hugging Face dataset", schema, len(dataset), batches, columns, batch_rows)


def _from_arrow(kind: str, schema: Any, rows: int, batches: Any, columns: Columns, batch_rows: int) -> VectorSource:
    where = f"the {kind}"
    chosen, precision = choose_columns(schema, columns, where)
    records = read_arrow(batches(batch_rows), chosen, where)
    return VectorSource(where, rows, records, storage=StorageInfo(kind, precision=precision))


def _first_value(series: Any) -> Any:
    present = series[series.notna()]
    return present.iloc[0] if len(present) else None


def _is_vector(value: Any) -> bool:
    if isinstance(value, np.ndarray):
        return value.ndim == 1 and value.dtype.kind in "fiu"
    return isinstance(value, list | tuple) and bool(value) and all(isinstance(each, int | float) for each in value)


def _precision(vector: Any) -> str:
    return str(vector.dtype) if isinstance(vector, np.ndarray) else "float64"


def _id(name: Any) -> Id:
    return int(name) if isinstance(name, int | np.integer) else str(name)
