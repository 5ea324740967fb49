"""Vectors of a DuckDB database: columns of arrays or lists of numbers. Opened read-only, without other files."""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

from unembed.connectors.arrow import read_arrow
from unembed.connectors.source import (
    DAMAGED,
    Columns,
    StorageInfo,
    VectorBatch,
    VectorSource,
    choose_column,
    choose_id,
    choose_table,
    choose_text,
    unchanged,
)
from unembed.errors import VectorError, first_line, require_extra

# A database may hold views of files and addresses: these are not opened, and no extension is fetched.
_SETTINGS = {
    "enable_external_access": "false",
    "autoinstall_known_extensions": "false",
    "autoload_known_extensions": "false",
}
_NUMBERS = {"FLOAT": "float32", "DOUBLE": "float64", "TINYINT": "int8", "SMALLINT": "int16", "INTEGER": "int32"}
_COLUMNS = (
    "SELECT schema_name, table_name, column_name, data_type FROM duckdb_columns() "
    "WHERE database_name = current_database() AND NOT internal ORDER BY 1, 2, column_index"
)


def read_duckdb(location: str, part: str | None, columns: Columns, batch_rows: int) -> VectorSource:
    """Open a table, or a view of tables; ``part`` is ``table``, ``table.column`` or ``schema.table.column``."""
    require_extra("duckdb", "duckdb", "pyarrow")
    import duckdb

    path, where = Path(location), f"duckdb:{location}"
    if not path.is_file():
        raise VectorError(f"There is no file {location}.", "Check the path.")
    try:
        connection = duckdb.connect(str(path), read_only=True, config=_SETTINGS)
        described = connection.execute(_COLUMNS).fetchall()
    except duckdb.Error as error:
        in_use = "lock" in str(error)
        raise VectorError(
            f"{where} cannot be read: {first_line(error)}.",
            "Another program has it open for writing. Stop it, or give a copy." if in_use else DAMAGED,
        ) from error
    tables: dict[str, dict[str, str]] = {}
    for schema, table, column, kind in described:
        tables.setdefault(table if schema == "main" else f"{schema}.{table}", {})[column] = kind
    holding = [name for name in tables if any(map(_precision, tables[name].values()))]
    table, column = choose_table(part, list(tables), holding, where)
    kinds, where = tables[table], f"{where}#{table}"
    chosen = choose_column(
        [name for name, kind in kinds.items() if _precision(kind)], column or columns.vectors, kinds, where
    )
    columns = replace(
        columns,
        vectors=chosen,
        texts=choose_text([name for name, kind in kinds.items() if kind == "VARCHAR"], columns.texts, where),
        ids=choose_id(kinds, columns.ids, where),
    )
    quoted = ".".join(map(_quote, table.split("."))) if table.count(".") == 1 else _quote(table)
    try:
        ((rows,),) = connection.execute(f"SELECT count(*) FROM {quoted}").fetchall()
    except duckdb.Error as error:
        raise VectorError(f"{where} cannot be read: {first_line(error)}.", "Give a table.") from error
    storage = StorageInfo("DuckDB table", precision=_precision(kinds[chosen]) or "unknown")
    records = unchanged([path], where, _read(connection, quoted, columns, where, batch_rows))
    return VectorSource(f"{where}.{chosen}", rows, records, storage=storage)


def _precision(kind: str) -> str | None:
    """Return the precision of a column of vectors; None for any other type."""
    base, bracket, _ = kind.partition("[")
    is_list = bool(bracket) and kind.count("[") == 1
    return _NUMBERS.get(base) if is_list else None


def _quote(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def _read(connection: Any, table: str, columns: Columns, where: str, batch_rows: int) -> Iterator[VectorBatch]:
    import duckdb

    wanted = dict.fromkeys(name for name in (columns.vectors, columns.texts, columns.ids) if name)
    query = f"SELECT {', '.join(map(_quote, wanted))} FROM {table}"
    try:
        with connection:
            result = connection.sql(query)
            older = not hasattr(result, "to_arrow_reader")
            reader = result.fetch_arrow_reader(batch_rows) if older else result.to_arrow_reader(batch_rows)
            yield from read_arrow(reader, columns, where)
    except duckdb.Error as error:
        raise VectorError(f"{where} can no longer be read: {first_line(error)}.", DAMAGED) from error
