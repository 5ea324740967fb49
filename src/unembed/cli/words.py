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
        typer.Option(
            help="Only vectors that have this word, or another form of it, among their --top likeliest words. If given "
            "several times: any of these words."
        ),
    ] = None,
    count: Annotated[
        bool,
        typer.Option(
            "--count",
            help="Count the vectors of each word, instead of listing vectors.",
        ),
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

    A text may hold a word that is not among its likeliest ones. --find says how often that was measured to happen.

    Example: unembed words chroma:./db#notes --find invoice
    """
    from collections import Counter

    import numpy as np

    from unembed.audit import WordReader
    from unembed.audit.calibration import stored_for
    from unembed.audit.finding import trust_for
    from unembed.cli.output import write_json_lines, write_lines
    from unembed.connectors import open_vectors
    from unembed.connectors.source import show_id
    from unembed.errors import VectorError
    from unembed.inverter import Inverter
    from unembed.progress import make_progress

    source = open_vectors(uri, column=column, batch_rows=_BATCH)
    source = source if limit is None else source.first(limit)
    inverter = Inverter.from_pretrained(model, device=device)
    reader = WordReader(inverter, top=top, vocabulary=vocabulary, find=find or [])
    wanted = [index for forms in reader.wanted.values() for index in forms]
    calibration = stored_for(inverter.info) if find else None
    trust = None
    holding = dict.fromkeys(reader.wanted, 0)
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
            kept = named.holding(wanted) if find else np.ones(len(batch), dtype=bool)
            for word, forms in reader.wanted.items():
                holding[word] += int(named.holding(forms).sum())
            if calibration and trust is None:
                trust = trust_for(calibration, batch.vectors)
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
    if count:
        common = counts.argsort()[::-1][:_MOST_COMMON].tolist()
        table = list(holding.items()) if find else [(reader.words[index], int(counts[index])) for index in common]
        if as_json:
            missed = {"missed": trust and round(trust.missed(top), 3)} if find else {}
            write_json_lines({"word": word, "vectors": number, "of": seen, **missed} for word, number in table)
        else:
            write_lines(f"{number:>9,}  {number / seen:>6.1%}  {word}" for word, number in table)
    if find:
        words_ = " or ".join(find)
        typer.echo(f"{shown:,} of {seen:,} vectors have {words_} among their {top:,} likeliest words.", err=True)
        unknown = "How many texts are missed was not measured for this inverter: no hit is no all-clear."
        typer.echo(trust.explain(top) if trust else unknown, err=True)
    for what, number in skipped.items():
        if number:
            typer.echo(f"Skipped: {number:,} vectors that are {what}.", err=True)
