"""Vectors of a LanceDB table, as it was when it was opened: later versions of it are not seen."""

import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

from unembed.connectors.arrow import complete_columns, is_list_of_numbers, needed, read_arrow
from unembed.connectors.source import (
    DAMAGED,
    Columns,
    StorageInfo,
    VectorBatch,
    VectorSource,
    choose_column,
    choose_part,
)
from unembed.errors import VectorError, first_line, require_extra

_SUFFIX = ".lance"


def read_lancedb(location: str, part: str | None, columns: Columns, batch_rows: int) -> VectorSource:
    """Open a table of a LanceDB folder."""
    require_extra("lancedb", "lancedb")
    import lancedb

    folder, where = Path(location), f"lancedb:{location}"
    # Looked for here: connecting to a folder that is not there would make it.
    tables = [path.name.removesuffix(_SUFFIX) for path in folder.glob(f"*{_SUFFIX}")]
    if not tables:
        raise VectorError(f"There is no LanceDB database in {location}: it has no table.", "Check the path.")
    name = choose_part(part, tables, "table", where)
    where = f"{where}#{name}"
    try:
        table = lancedb.connect(folder).open_table(name)
        schema, rows = table.schema, table.count_rows()
        table.checkout(table.version)
    except Exception as error:  # of its native part, of no common class
        raise VectorError(f"{where} cannot be read: {first_line(error)}.", DAMAGED) from error
    chosen = choose_column(
        [field.name for field in schema if is_list_of_numbers(field.type)], columns.vectors, schema.names, where
    )
    encoder = _encoder(schema.metadata or {}, chosen)
    storage = StorageInfo(
        "LanceDB table",
        precision=str(schema.field(chosen).type.value_type),
        encoder=encoder,
        encoder_said_by="the table's embedding function" if encoder else "",
    )
    columns = complete_columns(schema, replace(columns, vectors=chosen), where)
    return VectorSource(where, rows, _read(table, columns, where, batch_rows), storage=storage)


def _read(table: Any, columns: Columns, where: str, batch_rows: int) -> Iterator[VectorBatch]:
    try:
        batches = table.search().select(needed(columns, table.schema)).to_batches(batch_size=batch_rows)
        yield from read_arrow(batches, columns, where)
    except (RuntimeError, OSError) as error:
        raise VectorError(
            f"{where} can no longer be read: {first_line(error)}.",
            "The version that was being read may have been removed. Run again.",
        ) from error


def _encoder(metadata: dict[bytes, bytes], column: str) -> str | None:
    """Return the name of the model that LanceDB's own registry stored for a column."""
    try:
        functions = json.loads(metadata.get(b"embedding_functions", b"[]"))
    except ValueError:
        return None
    for function in functions if isinstance(functions, list) else []:
        if isinstance(function, dict) and function.get("vector_column", column) == column:
            name = (function.get("model") or {}).get("name") or function.get("name")
            return str(name) if name else None
    return None
