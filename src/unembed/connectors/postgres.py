"""Vectors of a PostgreSQL table: of pgvector's types, or arrays of numbers.

Read in one read-only transaction that sees the table as it was at its beginning.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from unembed.connectors.source import (
    Columns,
    Row,
    StorageInfo,
    VectorSource,
    choose_column,
    choose_id,
    choose_text,
    gather,
)
from unembed.connectors.uri import mask_passwords
from unembed.errors import VectorError, did_you_mean, first_line, require_extra

_SECONDS = 15
_PRECISIONS = {
    "vector": "float32",
    "halfvec": "float16",
    "real[]": "float32",
    "double precision[]": "float64",
    "numeric[]": "decimal",
}
_COLUMNS = """
SELECT n.nspname, c.relname, a.attname, format_type(a.atttypid, NULL)
FROM pg_attribute a JOIN pg_class c ON c.oid = a.attrelid JOIN pg_namespace n ON n.oid = c.relnamespace
WHERE c.relkind IN ('r', 'p', 'v', 'm', 'f') AND a.attnum > 0 AND NOT a.attisdropped
  AND n.nspname NOT IN ('pg_catalog', 'information_schema')
ORDER BY 1, 2, a.attnum
"""
_KEY = """
SELECT a.attname FROM pg_index i JOIN pg_attribute a ON a.attrelid = i.indrelid AND a.attnum = ANY(i.indkey)
WHERE i.indrelid = %s::regclass AND i.indisprimary AND i.indnatts = 1
"""
_TEXTS = ("text", "character varying", "character")


@dataclass(frozen=True)
class _Table:
    schema: str
    name: str
    vectors: str
    kind: str
    """The type of the column of vectors."""
    texts: str | None
    ids: str | None
    """The column that the user names; else the primary key is taken."""


def read_postgres(location: str, part: str | None, columns: Columns, batch_rows: int) -> VectorSource:
    """Open a column of a table.

    Args:
        location: a connection string, ``postgresql://user@host/database`` or ``host=... dbname=...``. A password may
            also come from PGPASSWORD or ~/.pgpass, where it is not seen.
        part: ``table``, ``table.column`` or ``schema.table.column``.
        columns: the column of vectors, if ``part`` does not say it; those of ids and texts.
        batch_rows: rows per batch.
    """
    require_extra("pgvector", "psycopg")
    import psycopg
    from psycopg import sql

    where = f"pgvector:{mask_passwords(location)}"
    try:
        # A query may take as long as it needs, but the server's machine must answer.
        alive = {"keepalives_idle": _SECONDS, "keepalives_interval": 10, "keepalives_count": 3}
        connection = psycopg.connect(location, connect_timeout=_SECONDS, application_name="unembed", **alive)
        connection.read_only = True
        connection.isolation_level = psycopg.IsolationLevel.REPEATABLE_READ
        table = _find(connection.execute(_COLUMNS).fetchall(), part, columns, where)
        where = f"{where}#{table.name}.{table.vectors}"
        quoted = sql.Identifier(table.schema, table.name)
        rows = _first_value(connection.execute(sql.SQL("SELECT count(*) FROM {}").format(quoted)))
        key = table.ids or _first_value(connection.execute(_KEY, [quoted.as_string(connection)]))
    except psycopg.OperationalError as error:
        raise VectorError(
            f"{where} cannot be opened: {first_line(error)}.",
            "Check the address, the user and the password (PGPASSWORD).",
        ) from error
    except psycopg.Error as error:
        raise VectorError(
            f"{where} cannot be read: {first_line(error)}.", "Check that this user may read it."
        ) from error
    query = sql.SQL("SELECT {}, {}::real[], {} FROM {}").format(
        sql.SQL("row_number() OVER ()") if key is None else sql.Identifier(key),
        sql.Identifier(table.vectors),
        sql.SQL("NULL") if table.texts is None else sql.Identifier(table.texts),
        quoted,
    )
    records = gather(_rows(connection, query, batch_rows, where), where, "row", batch_rows)
    storage = StorageInfo("PostgreSQL table", precision=_PRECISIONS.get(table.kind, table.kind))
    return VectorSource(where, rows, records, storage=storage)


def _rows(connection: Any, query: Any, batch_rows: int, where: str) -> Iterator[Row]:
    import psycopg

    try:
        with connection, connection.cursor(name="unembed", binary=True) as cursor:
            cursor.itersize = batch_rows
            for key, vector, text in cursor.execute(query):
                yield (key if isinstance(key, int) else str(key)), vector, text
    except psycopg.Error as error:
        raise VectorError(
            f"{where} can no longer be read: {first_line(error)}.", "Check the connection, and run again."
        ) from error


def _find(described: list[tuple[str, str, str, str]], part: str | None, columns: Columns, where: str) -> _Table:
    """Find the column of vectors that was asked for, or the only one that there is."""
    tables: dict[tuple[str, str], dict[str, str]] = {}
    for schema, name, attribute, kind in described:
        tables.setdefault((schema, name), {})[attribute] = kind
    holding = {
        table: [attribute for attribute, kind in attributes.items() if kind in _PRECISIONS or kind.endswith(".vector")]
        for table, attributes in tables.items()
    }
    words = part.split(".") if part else []
    fitting = [table for table in tables if _fits(table, words)]
    if part is None:
        fitting = [table for table in tables if holding[table]]
    if len(fitting) != 1:
        existing = [f"{name}.{attribute}" for (_, name), attributes in holding.items() for attribute in attributes]
        if not fitting and part is not None:
            raise VectorError(f"{where} has no table '{part}'.", f"After #, {did_you_mean(part, existing)}")
        raise VectorError(
            f"{where} has {'several' if fitting else 'no'} tables with vectors{f' named {part!r}' if part else ''}.",
            f"Name one: ...#TABLE.COLUMN. There are: {', '.join(existing) or 'none'}.",
        )
    table = fitting[0]
    wanted = words[-1] if words and words[-1] != table[1] else columns.vectors
    chosen = choose_column(holding[table], wanted, tables[table], f"{where}#{table[1]}")
    here = f"{where}#{table[1]}"
    texts = choose_text((name for name, kind in tables[table].items() if kind in _TEXTS), columns.texts, here)
    ids = choose_id(tables[table], columns.ids, here) if columns.ids else None
    return _Table(*table, chosen, tables[table][chosen], texts, ids)


def _fits(table: tuple[str, str], words: list[str]) -> bool:
    """Whether ``table``, ``table.column``, ``schema.table`` or ``schema.table.column`` means this table."""
    schema, name = table
    return words[:1] == [name] or words[:2] == [schema, name]


def _first_value(cursor: Any) -> Any:
    row = cursor.fetchone()
    return row[0] if row else None
