"""``unembed prepare``: options in, a corpus folder out. Does not know how a corpus is made."""

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from rich.table import Table

    from unembed.corpus import CorpusReport


def prepare(
    inputs: Annotated[
        list[str],
        typer.Argument(
            metavar="INPUT[@WEIGHT]",
            help="Files (.txt, .jsonl, .csv, .tsv, each also .gz; .parquet), folders of them, or hf:name[:config] to "
            "stream a dataset of the Hugging Face hub (hf:allenai/c4:fr). With several inputs, @WEIGHT is how often an "
            "input is drawn from, relative to the others; 1 by default.",
            show_default=False,
        ),
    ],
    output: Annotated[
        Path,
        typer.Option(
            "--output", "-o", help="Folder for train.txt, validation.txt and corpus.json.", show_default=False
        ),
    ],
    mode: Annotated[
        str, typer.Option(help="passage: keep each text whole. sentence: cut it at sentence ends and line breaks.")
    ] = "passage",
    field: Annotated[
        str | None,
        typer.Option(
            help="Field or column that holds the text; a number is a column, counted from 0, of a .csv or .tsv without "
            "a header.",
            show_default="text, or the only column",
        ),
    ] = None,
    min_characters: Annotated[int, typer.Option(min=1, help="Drop shorter texts.")] = 20,
    max_characters: Annotated[int, typer.Option(min=1, help="Drop longer texts.")] = 500,
    fragment_share: Annotated[
        float,
        typer.Option(
            help="Shorten this share of the texts to two to ten words in a row, for sources without short texts such "
            "as queries."
        ),
    ] = 0.0,
    question_share: Annotated[
        float,
        typer.Option(
            help="Shorten this share of the texts that contain a question to that question. Half of these lose their "
            "question mark."
        ),
    ] = 0.0,
    validation_share: Annotated[
        float, typer.Option(help="Share of the texts set aside for validation, below 1; the same texts every time.")
    ] = 0.01,
    limit: Annotated[
        int | None, typer.Option(min=1, help="Stop after keeping this many texts.", show_default="no limit")
    ] = None,
    seed: Annotated[int, typer.Option(help="Decides the split and the order of the mix.")] = 0,
    as_json: Annotated[bool, typer.Option("--json", help="Print the report as JSON.")] = False,
) -> None:
    """Make a training corpus: read, clean, de-duplicate, mix and split texts.

    Example: unembed prepare news.txt.gz@2 reviews.csv hf:allenai/c4:fr --limit 100000 -o corpus
    """
    from rich.console import Console
    from rich.progress import Progress, SpinnerColumn, TextColumn

    from unembed import corpus
    from unembed.progress import RateColumn

    with Progress(
        SpinnerColumn(),
        TextColumn("{task.completed:,.0f} read, {task.fields[kept]:,} kept"),
        RateColumn(),
        console=Console(stderr=True),
        transient=True,
    ) as progress:
        task = progress.add_task("prepare", total=None, kept=0)
        report = corpus.prepare(
            inputs,
            output,
            mode=mode,
            min_characters=min_characters,
            max_characters=max_characters,
            fragment_share=fragment_share,
            question_share=question_share,
            validation_share=validation_share,
            limit=limit,
            seed=seed,
            field=field,
            on_progress=lambda read, kept: progress.update(task, completed=read, kept=kept),
        )
    if as_json:
        typer.echo(json.dumps(report.to_dict(), indent=2, ensure_ascii=False))
    else:
        Console().print(_table(report, output))


def _table(report: "CorpusReport", output: Path) -> "Table":
    from rich.table import Table

    unit = "sentences" if report.options.mode == "sentence" else "texts"
    table = Table(title=f"Corpus in {output}", title_justify="left", show_header=False)
    table.add_column()
    table.add_column(justify="right")
    table.add_row("texts read", f"{report.read:,}", end_section=True)
    table.add_row(f"{unit} to train", f"{report.train:,}")
    table.add_row(f"{unit} to validate", f"{report.validation:,}", end_section=True)
    for reason, count in report.dropped.items():
        if count:
            table.add_row(f"dropped: {reason}", f"{count:,}", style="dim")
    return table
