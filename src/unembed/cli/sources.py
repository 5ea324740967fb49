"""How commands that read vectors ask for their source and the inverter, and where results go."""

from pathlib import Path
from typing import Annotated

import typer

INVERTER = "an inverter: a name that unembed inverters lists, a folder or a hub id"
"""What a model may be, for help texts."""
InverterName = Annotated[str, typer.Option("--model", "-m", help=f"{INVERTER.capitalize()}.")]
SOURCE_HELP = (
    "A vector database: chroma:FOLDER#collection, qdrant:FOLDER-or-URL#collection, faiss:FILE, sqlite:FILE#table, "
    "postgresql://...#table.column and others (docs/stores.md lists them); or a file of vectors."
)
SourceUri = Annotated[str, typer.Argument(help=SOURCE_HELP)]
SourceColumn = Annotated[
    str | None,
    typer.Option(
        help="The column, field or named vector that holds the vectors.", show_default="detected automatically"
    ),
]
SourceIdColumn = Annotated[
    str | None,
    typer.Option(help="The column or field that names each row.", show_default="the database's own id"),
]
SourceTextColumn = Annotated[
    str | None,
    typer.Option(help="The column or field that holds the stored texts.", show_default="detected automatically"),
]
ResultsPath = Annotated[
    Path | None,
    typer.Option("--output", "-o", help="Write the results to this file as JSON lines, each as soon as it is known."),
]
Resume = Annotated[
    bool, typer.Option("--resume", help="Continue the --output file of a run that was stopped or killed.")
]
