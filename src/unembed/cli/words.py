"""``unembed words``: the words that each vector gives away. Knows how they are shown."""

import sys
from contextlib import nullcontext
from typing import TYPE_CHECKING, Annotated, Any

import typer

from unembed.cli.distribution import RayAddress, WorkerCount, check_cluster, shards_on
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
    ray: RayAddress = None,
    workers: WorkerCount = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print a JSON object per line.")] = False,
) -> None:
    """Name the words that vectors give away: a first look, without their order.

    A text may hold a word that is not among its likeliest ones. --find says how often that was measured to happen.

    Example: unembed words chroma:./db#notes --find invoice
    """
    from collections import Counter
    from functools import partial

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
    from unembed.cli.word_shards import Listing, WordWorker, load_worker, open_source, read_shards
    from unembed.distribution import in_order
    from unembed.errors import ConfigError, VectorError
    from unembed.inverter import Inverter
    from unembed.progress import make_progress

    check_cluster(ray, workers)
    if ray is not None and (clusters or probe is not None):
        raise ConfigError("--ray lists, finds and counts words.", "Leave out --ray, or --clusters and --probe.")
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
    columns = {"column": column, "id_column": id_column, "text_column": text_column}
    open_again = partial(open_source, uri, _BATCH, limit, **columns)
    source = open_again()
    inverter = Inverter.from_pretrained(model, device=device)
    choice: dict[str, Any] = {"top": top, "vocabulary": vocabulary, "find": find or []}
    reader = WordReader(inverter, **choice)
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
    listing: Listing = "none" if count else "json" if results or as_json else "text"
    calibration = stored_for(inverter.info) if find else None
    done, last_id = (results.rows, results.last_id) if results else (0, None)
    if ray is None:
        read = partial(read_shards, lambda: source, done, last_id)
        make = partial(WordWorker, reader, listing, calibration)
    else:
        read = partial(read_shards, open_again, done, last_id)
        make = partial(load_worker, model, device, inverter.info, listing, choice)
    trust = None
    holding = dict.fromkeys(reader.wanted, 0)
    counts = np.zeros(len(reader.words), dtype=np.int64)
    skipped: Counter[str] = Counter()
    seen, shown = done, 0
    hidden = (results is None and sys.stdout.isatty()) or not sys.stderr.isatty()
    with (
        shards_on(ray, workers, device) as map_shards,
        early_end() as interrupted,
        results or nullcontext(),
        make_progress(disable=hidden) as progress,
    ):
        task = progress.add_task("Reading", total=source.rows, completed=done)
        for _, found in in_order(map_shards(read, make)):
            counts += found["counts"]
            seen += found["rows"]
            shown += found["shown"]
            skipped.update(found["skipped"])
            progress.advance(task, found["rows"])
            for word, number in found["holding"].items():
                holding[word] += number
            if calibration and trust is None and found["rows"]:
                trust = trust_for(calibration, found["tokens"])
            if results:
                results.write_lines(found["lines"])
            elif found["lines"]:
                sys.stdout.write(found["lines"])
                sys.stdout.flush()
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
