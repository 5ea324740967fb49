"""Which field of a record holds the text. Knows nothing of files."""

from collections.abc import Collection
from typing import Any

from unembed.errors import CorpusError, did_you_mean

DEFAULT_FIELD = "text"


def choose_field(names: Collection[str], field: str | None, where: str) -> str:
    """Return the field to read: the one asked for, else ``text``, else the only one there is.

    Args:
        names: the fields that the record has.
        field: the field asked for, if any.
        where: the file and line of the record, for the error.

    Raises:
        CorpusError: the field asked for is not there, or none was asked for and the choice is not clear.
    """
    wanted = field or DEFAULT_FIELD
    if wanted in names:
        return wanted
    if field is None and len(names) == 1:
        return next(iter(names))
    # The "names" of a file without a header are whole sentences: their beginnings are enough.
    shown = [name if len(name) <= 30 else f"{name[:29].rstrip()}…" for name in names]
    guess = f": {did_you_mean(wanted, shown)}" if field and shown else "."
    raise CorpusError(
        f"{where} has no field '{wanted}'. Its fields: {', '.join(shown) or 'none'}.",
        f"Choose with `field`{guess} In a .csv or .tsv without a header, name a column by its "
        "number, counted from 0: `field=1`",
    )


def as_text(value: Any, field: str, where: str) -> str:
    """Return a field's value when it is text; a missing value (null) is the empty text."""
    if value is None:
        return ""
    if isinstance(value, str):
        return value
    raise CorpusError(
        f"{where}: field '{field}' holds {type(value).__name__}, not text.", "Choose a text field with `field`."
    )
