"""``unembed words``: the words that each vector gives away. Knows how they are shown."""

import sys
from typing import Annotated

import typer

from unembed.cli.sources import SourceColumn, SourceUri

_BATCH = 4096
_MOST_COMMON = 50


def words(
    uri: SourceUri,
    find: Annotated[
        list[str] | None,
        typer.Option(help="Only vectors that give this word away. If given several times: any of these words."),
    ] = None,
    count: Annotated[
        bool, typer.Option("--count", help="Count how many vectors give each word away, instead of listing vectors.")
    ] = False,
    top: Annotated[int, typer.Option(min=1, help="Words per vector.")] = 12,
    vocabulary: Annotated[
        int, typer.Option(min=1, help="Look for this many words, the most frequent ones. More words take longer.")
    ] = 5120,
    limit: Annotated[int | None, typer.Option(min=1, help="Read only this many vectors, the first ones.")] = None,
    column: SourceColumn = None,
    model: Annotated[str, typer.Option("--model", "-m", help="An inverter: a folder or a hub id.")] = "default",
    device: Annotated[str, typer.Option(help="auto, cpu, cuda, mps.")] = "auto",
    as_json: Annotated[bool, typer.Option("--json", help="Print a JSON object per line.")] = False,
) -> None:
    """Name the words that vectors give away: a first look, without their order.

    Example: unembed words chroma:./db#notes --find invoice
    """
    from collections import Counter

    import numpy as np

    from unembed.audit import WordReader
    from unembed.cli.output import write_json_lines, write_lines
    from unembed.connectors import open_vectors
    from unembed.connectors.source import show_id
    from unembed.errors import VectorError
    from unembed.inverter import Inverter
    from unembed.progress import make_progress

    source = open_vectors(uri, column=column, batch_rows=_BATCH)
    source = source if limit is None else source.first(limit)
    reader = WordReader(Inverter.from_pretrained(model, device=device), top=top, vocabulary=vocabulary, find=find or [])
    counts = np.zeros(len(reader.words), dtype=np.int64)
    skipped: Counter[str] = Counter()
    seen = shown = 0
    with make_progress(disable=sys.stdout.isatty() or not sys.stderr.isatty()) as progress:
        task = progress.add_task("Reading", total=source.rows)
        for batch in source.usable(skipped):
            named = reader.read(batch.vectors)
            counts += named.counts()
            seen += len(batch)
            progress.advance(task, len(batch))
            kept = named.holding(reader.wanted.values()) if find else np.ones(len(batch), dtype=bool)
            shown += int(kept.sum())
            if count:
                continue
            rows = [(batch.ids[row], named.names_of(row)) for row in np.flatnonzero(kept).tolist()]
            if as_json:
                write_json_lines({"id": vector_id, "words": words} for vector_id, words in rows)
            else:
                write_lines(f"{show_id(vector_id)}\t{' '.join(words)}" for vector_id, words in rows)
    if not seen:
        raise VectorError(f"{source.name} holds no vectors that can be read.", "Check the address.")
    shown_words = list(reader.wanted.values()) if find else counts.argsort()[::-1][:_MOST_COMMON].tolist()
    if count:
        table = [(reader.words[index], int(counts[index])) for index in shown_words]
        if as_json:
            write_json_lines({"word": word, "vectors": number, "of": seen} for word, number in table)
        else:
            write_lines(f"{number:>9,}  {number / seen:>6.1%}  {word}" for word, number in table)
    elif find:
        typer.echo(f"{shown:,} of {seen:,} vectors give away {' or '.join(find)}.", err=True)
    for what, number in skipped.items():
        if number:
            typer.echo(f"Skipped: {number:,} vectors that are {what}.", err=True)
