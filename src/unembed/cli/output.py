"""Results on stdout, as a table or as JSON. Does not know what they mean."""

import json
import sys
from collections.abc import Iterable, Mapping
from typing import Any

from rich.console import Console
from rich.table import Table

from unembed.text import printable


def show_json(value: Any) -> None:
    """Print a value as JSON, one document."""
    sys.stdout.write(json.dumps(value, indent=2, ensure_ascii=False, default=str) + "\n")


def show_json_line(value: Any) -> None:
    """Print a value as one line of JSON, and flush it, so that a reader of a pipe gets it at once."""
    write_json_lines([value])


def write_lines(lines: Iterable[str]) -> None:
    """Print lines in one write, and flush them."""
    sys.stdout.write("".join(f"{line}\n" for line in lines))
    sys.stdout.flush()


def write_json_lines(values: Iterable[Any]) -> None:
    """Print values as lines of JSON in one write, and flush them."""
    write_lines(json.dumps(value, ensure_ascii=False, default=str) for value in values)


def show_result(rows: Mapping[str, Mapping[str, Any]], *, title: str, as_json: bool) -> None:
    """Print named rows of the same columns, as JSON or as a table."""
    if as_json:
        show_json(rows)
        return
    columns = list(next(iter(rows.values()))) if rows else []
    table = Table()
    table.add_column("", overflow="fold")
    for column in columns:
        table.add_column(column, justify="right")
    for name, row in rows.items():
        table.add_row(name, *(format_value(row[column]) for column in columns))
    # Plain: brackets and colons in a path are not markup.
    console = Console(markup=False, emoji=False, highlight=False)
    console.print(printable(title))
    console.print(table)


def format_value(value: Any) -> str:
    """Format a cell: thousands separated, floats to four digits."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return str(value)
    return f"{value:,}" if isinstance(value, int) else f"{value:.4g}"
