"""How commands that read vectors ask for their source."""

from typing import Annotated

import typer

SourceUri = Annotated[
    str,
    typer.Argument(
        help="A vector database: chroma:FOLDER#collection, qdrant:FOLDER-or-URL#collection, faiss:FILE, "
        "lancedb:FOLDER#table, pgvector:postgresql://...#table.column; or a file of vectors."
    ),
]
SourceColumn = Annotated[
    str | None,
    typer.Option(
        help="The column, field or named vector that holds the vectors.", show_default="detected automatically"
    ),
]
