"""How commands that read a store of vectors ask for it."""

from typing import Annotated

import typer

StoreUri = Annotated[
    str,
    typer.Argument(
        help="A store: chroma:FOLDER#collection, qdrant:FOLDER-or-URL#collection, faiss:FILE, lancedb:FOLDER#table, "
        "pgvector:postgresql://...#table.column, or a file of vectors."
    ),
]
StoreColumn = Annotated[
    str | None,
    typer.Option(help="The column, field or named vector that holds the vectors.", show_default="the one that can"),
]
