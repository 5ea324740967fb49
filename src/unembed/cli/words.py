"""``unembed words``: the words that each vector gives away. Knows how they are shown."""

import sys
from contextlib import nullcontext
from typing import TYPE_CHECKING, Annotated, Any

import typer

from unembed.cli.sources import (
    InverterName,
    ResultsPath,
    Resume,
    SourceColumn,
    SourceIdColumn,
    SourceTextColumn,
    SourceUri,
)

if TYPE_CHECKING:
    from unembed.auditing.words import Words
    from unembed.connectors import VectorBatch

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
    clusters: Annotated[
        int | None,
        typer.Option(min=1, help="Group the vectors into this many topics; show each one's size, words and examples."),
    ] = None,
    probe: Annotated[
        str | None,
        typer.Option(
            help="Rank the vectors by how near they are to a subject: health, money, credentials, minors, or a file "
            "with one sentence on each line. Needs the encoder."
        ),
    ] = None,
    most: Annotated[int, typer.Option(min=1, help="With --probe: list this many vectors, the nearest ones.")] = 100,
    invert: Annotated[
        int, typer.Option(min=0, help="With --probe: invert this many of them, from the vector alone.")
    ] = 0,
    encoder: Annotated[
        str | None,
        typer.Option(
            help="With --probe: the encoder that made the vectors, its name or its folder.",
            show_default="the inverter's",
        ),
    ] = None,
    top: Annotated[int, typer.Option(min=1, help="Words per vector.")] = 12,
    vocabulary: Annotated[
        int | None,
        typer.Option(
            min=1,
            help="Look for this many words, the most frequent ones. More words take longer.",
            show_default="5,120 for each language of the inverter",
        ),
    ] = None,
    limit: Annotated[int | None, typer.Option(min=1, help="Read only this many vectors, the first ones.")] = None,
    column: SourceColumn = None,
    id_column: SourceIdColumn = None,
    text_column: SourceTextColumn = None,
    model: InverterName = "default",
    device: Annotated[str, typer.Option(help="auto, cpu, cuda, mps.")] = "auto",
    output: ResultsPath = None,
    resume: Resume = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print a JSON object per line.")] = False,
) -> None:
    """Name the words that vectors give away: a first look, without their order.

    A text may hold a word that is not among its likeliest ones. --find says how often that was measured to happen.

    Example: unembed words chroma:./db#notes --find invoice
    """
    from collections import Counter

    import numpy as np

    from unembed.auditing import WordReader
    from unembed.auditing.calibration import stored_for
    from unembed.auditing.finding import trust_for
    from unembed.auditing.probes import Probe, load_probe
    from unembed.cli.interrupt import early_end
    from unembed.cli.invert import load_encoder_for
    from unembed.cli.output import write_json_lines, write_lines
    from unembed.cli.probe import show_ranked
    from unembed.cli.results import open_results
    from unembed.cli.topics import show_topics
    from unembed.connectors import open_vectors
    from unembed.connectors.source import rows_after
    from unembed.errors import ConfigError, VectorError
    from unembed.inverter import Inverter
    from unembed.progress import make_progress

    if count and output is not None:
        raise ConfigError("--output is for a list of vectors, not for counts.", "Leave out --count or --output.")
    if clusters and (count or find or output is not None or resume):
        raise ConfigError(
            "--clusters shows topics, not a list of vectors.", "Leave out --find, --count, --output and --resume."
        )
    if probe is not None and (find or count or clusters or output is not None or resume):
        raise ConfigError("--probe ranks all vectors.", "Leave out --find, --count, --clusters, --output and --resume.")
    sentences = None if probe is None else load_probe(probe)
    results = open_results(output, resume)
    source = open_vectors(uri, column=column, id_column=id_column, text_column=text_column, batch_rows=_BATCH)
    source = source if limit is None else source.first(limit)
    inverter = Inverter.from_pretrained(model, device=device)
    reader = WordReader(inverter, top=top, vocabulary=vocabulary, find=find or [])
    if clusters:
        show_topics(source, reader, clusters, as_json=as_json)
        return
    if probe is not None and sentences is not None:
        show_ranked(
            source,
            inverter,
            probe,
            Probe(sentences, load_encoder_for(inverter, encoder, device)),
            most=most,
            invert=invert,
            name_words=lambda vectors: _names(reader.read(vectors)),
            as_json=as_json,
        )
        return
    wanted = [index for forms in reader.wanted.values() for index in forms]
    calibration = stored_for(inverter.info) if find else None
    trust = None
    holding = dict.fromkeys(reader.wanted, 0)
    counts = np.zeros(len(reader.words), dtype=np.int64)
    skipped: Counter[str] = Counter()
    done = results.rows if results else 0
    seen, shown = done, 0
    batches = rows_after(source.usable(skipped), done, results.last_id if results else None, source.name)
    hidden = (results is None and sys.stdout.isatty()) or not sys.stderr.isatty()
    with early_end() as interrupted, results or nullcontext(), make_progress(disable=hidden) as progress:
        task = progress.add_task("Reading", total=source.rows, completed=done)
        for batch in batches:
            named = reader.read(batch.vectors)
            counts += named.counts()
            first, seen = seen, seen + len(batch)
            progress.advance(task, len(batch))
            kept = named.holding(wanted) if find else np.ones(len(batch), dtype=bool)
            for word, forms in reader.wanted.items():
                holding[word] += int(named.holding(forms).sum())
            if calibration and trust is None:
                trust = trust_for(calibration, batch.vectors)
            shown += int(kept.sum())
            if not count:
                records = [
                    _record(first + row, batch, row, named.names_of(row)) for row in np.flatnonzero(kept).tolist()
                ]
                if results:
                    results.write(records)
                elif as_json:
                    write_json_lines(records)
                else:
                    write_lines(map(_line, records))
            if interrupted():
                typer.echo(f"Stopped early, after {seen:,} vectors.", err=True)
                break
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
        typer.echo(f"{shown:,} of {seen - done:,} vectors have {words_} among their {top:,} likeliest words.", err=True)
        unknown = "How many texts are missed was not measured for this inverter: no hit is no all-clear."
        typer.echo(trust.explain(top) if trust else unknown, err=True)
    for what, number in skipped.items():
        if number:
            typer.echo(f"Skipped: {number:,} vectors that are {what}.", err=True)


def _names(words: "Words") -> list[list[str]]:
    return [words.names_of(row) for row in range(len(words))]


def _record(number: int, batch: "VectorBatch", row: int, words: list[str]) -> dict[str, Any]:
    """Return one vector's words as JSON has them."""
    record: dict[str, Any] = {"row": number, "id": batch.ids[row], "words": words}
    text = batch.texts[row] if batch.texts else None
    return record if text is None else record | {"stored_text": text}


def _line(record: dict[str, Any]) -> str:
    """Return one vector's words as a line: its id, the words, and the stored text if there is one."""
    from unembed.text import printable

    cells = [record["id"], " ".join(record["words"]), *([record["stored_text"]] if "stored_text" in record else [])]
    return "\t".join(printable(str(cell)) for cell in cells)
