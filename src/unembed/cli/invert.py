"""``unembed invert``: texts or vectors in, recovered texts out. Knows how results are shown, not how they are made."""

import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import asdict
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated, Any

import typer

from unembed.cli.sources import ResultsPath, Resume, SourceIdColumn, SourceTextColumn

if TYPE_CHECKING:
    from rich.console import Console
    from rich.text import Text

    from unembed.canvas import RoundTrip
    from unembed.cli.animation import Row
    from unembed.cli.job import InputBatch, InversionJob, InvertedText
    from unembed.cli.results import ResultFile
    from unembed.config import DecodingConfig
    from unembed.connectors.source import Id
    from unembed.encoders import Encoder
    from unembed.inverter import Inverter

# More vectors than this are not animated.
_ANIMATED_AT_MOST = 16


class EngineName(StrEnum):
    """What can run the denoiser."""

    torch = "torch"
    onnx = "onnx"


class EffortName(StrEnum):
    """How long a guided search may take."""

    quick = "quick"
    normal = "normal"
    thorough = "thorough"


def invert(
    source: Annotated[
        list[str] | None,
        typer.Argument(
            help="Texts (a round trip through the encoder); or one file of vectors: .npy, .npz, .csv, .tsv, .jsonl, "
            ".json, .parquet; or a vector database, as in unembed audit; or - for stdin, a vector per line.",
            show_default=False,
        ),
    ] = None,
    model: Annotated[str, typer.Option("--model", "-m", help="An inverter: a folder or a hub id.")] = "default",
    strategy: Annotated[
        str | None,
        typer.Option(
            help="sequential, euler, euler-remask, two-stage, confidence, adaptive; or a search: surrogate, or guided "
            "with the encoder.",
            show_default="confidence",
        ),
    ] = None,
    guided: Annotated[bool, typer.Option("--guided", help="Short for --strategy guided.")] = False,
    steps: Annotated[int | None, typer.Option(help="Largest number of passes, without the encoder.")] = None,
    effort: Annotated[
        EffortName | None,
        typer.Option(help="How long to search for a text that is not recovered exactly.", show_default="normal"),
    ] = None,
    rounds: Annotated[int | None, typer.Option(help="Largest number of rounds of a search.")] = None,
    calls: Annotated[
        int | None,
        typer.Option(help="Largest number of texts that a search embeds per vector.", show_default="by --effort"),
    ] = None,
    candidates: Annotated[int | None, typer.Option(help="Hypotheses per vector; the best is kept.")] = None,
    rerank: Annotated[
        int | None,
        typer.Option(help="Embed this many blind hypotheses per vector and keep the nearest: one call of the encoder."),
    ] = None,
    length: Annotated[
        int | None, typer.Option(min=1, help="Number of tokens of each text.", show_default="the inverter's guess")
    ] = None,
    guidance: Annotated[float | None, typer.Option(help="Strength of classifier-free guidance; 0 for none.")] = None,
    temperature: Annotated[float | None, typer.Option(help="Temperature of the strategies that sample.")] = None,
    top_k: Annotated[
        int | None, typer.Option(help="Sample among this many of the likeliest tokens; 0 for all.")
    ] = None,
    seed: Annotated[int | None, typer.Option(help="The same seed gives the same texts.")] = None,
    limit: Annotated[int | None, typer.Option(min=1, help="Read only this many vectors.")] = None,
    column: Annotated[
        str | None,
        typer.Option(help="The array, column or field that holds the vectors.", show_default="detected automatically"),
    ] = None,
    id_column: SourceIdColumn = None,
    text_column: SourceTextColumn = None,
    encoder: Annotated[
        str | None,
        typer.Option(
            help="The inverter's encoder, for round trips, --guided and --rerank: a folder, a hub id or an address. "
            "Texts are sent to an address only if you give it here.",
            show_default="the encoder that the inverter names",
        ),
    ] = None,
    engine: Annotated[EngineName, typer.Option(help="What runs the denoiser.")] = EngineName.torch,
    device: Annotated[str, typer.Option(help="auto, cpu, cuda, mps.")] = "auto",
    batch_size: Annotated[int, typer.Option(min=1, help="Hypotheses decoded together.")] = 64,
    output: ResultsPath = None,
    resume: Resume = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print a JSON object per text, one a line.")] = False,
    trace: Annotated[bool, typer.Option("--trace", help="Show every pass as well.")] = False,
    animation: Annotated[
        bool, typer.Option("--animation/--no-animation", help="Animate the denoising in a terminal.")
    ] = True,
) -> None:
    """Read the text back out of vectors.

    Example: unembed invert "Embeddings are not anonymous." --guided
    """
    from unembed.cli.inputs import open_input, read_batches, skip_finished
    from unembed.cli.interrupt import early_end
    from unembed.cli.loading import loading
    from unembed.cli.results import open_results
    from unembed.hub import fetch_checkpoint

    options = _decoding_options(
        strategy,
        guided=guided,
        effort=effort and effort.value,
        rounds=rounds,
        calls=calls,
        candidates=candidates,
        rerank=rerank,
        steps=steps,
        guidance=guidance,
        temperature=temperature,
        top_k=top_k,
        seed=seed,
    )
    results = open_results(output, resume)
    given = open_input(source or [], (column, id_column, text_column), limit, batch_size)
    given = skip_finished(given, results)
    done = results.rows if results else 0
    with loading(f"the inverter {model}"):
        folder = fetch_checkpoint(model)
        # This import takes seconds, so options and names are checked before it.
        from unembed.cli.animation import Painter, make_console
        from unembed.cli.job import InversionJob
        from unembed.inverter import Inverter

        inverter = Inverter.from_pretrained(folder, device=device, engine=engine.value)
    loaded_encoder = None
    if isinstance(given, list) or options.needs_encoder:
        with loading(f"the encoder {encoder or inverter.info.encoder.name}"):
            loaded_encoder = load_encoder_for(inverter, encoder, device)
    total = len(given) if isinstance(given, list) else given.rows
    console = make_console()
    watched = animation and not as_json and not trace and console.is_terminal and not console.is_dumb_terminal
    with early_end() as interrupted:
        job = InversionJob(
            inverter,
            options,
            Painter(inverter.tokenizer, inverter.info.vocabulary),
            encoder=loaded_encoder,
            length=_checked(length, inverter),
            batch_size=batch_size,
            trace=trace,
            interrupted=interrupted,
            first_row=done,
        )
        batches = job.embed(given) if isinstance(given, list) else read_batches(given, inverter)
        if results:
            finished = _write(job, batches, total, results)
        elif watched and total is not None and total <= _ANIMATED_AT_MOST:
            finished = _animate(job, batches, console)
        else:
            finished = _list(job, batches, total, as_json=as_json)
        if interrupted():
            _end_early(finished, best_so_far=options.searches, results=results)
    if not finished and not done:
        typer.echo("There were no vectors to invert.", err=True)


def _list(job: "InversionJob", batches: "Iterable[InputBatch]", total: int | None, *, as_json: bool) -> int:
    """Print results; return how many there were."""
    from unembed.cli.output import show_json_line

    finished = 0
    with _progress(total, hidden=sys.stdout.isatty()) as advance:
        for result in job.run(batches):
            finished += 1
            if as_json:
                show_json_line(_record(result))
            else:
                _print(result)
            advance()
    return finished


def _write(job: "InversionJob", batches: "Iterable[InputBatch]", total: int | None, results: "ResultFile") -> int:
    """Write results to a file; return how many there were."""
    finished = 0
    with results, _progress(total) as advance:
        for result in job.run(batches):
            finished += 1
            results.write([_record(result)])
            advance()
    return finished


def _end_early(finished: int, *, best_so_far: bool, results: "ResultFile | None") -> None:
    """Say what there is after Ctrl-C: a search ends with its best texts, other work without the rest."""
    done = "these are the best texts so far" if best_so_far else f"{finished:,} texts are done"
    more = " Run the same command with --resume to continue." if results else ""
    typer.echo(f"Stopped early: {done}.{more}", err=True)
    if not best_so_far:
        raise typer.Exit(1)


def _decoding_options(
    strategy: str | None,
    *,
    guided: bool,
    effort: str | None,
    rounds: int | None,
    calls: int | None,
    candidates: int | None,
    **others: float | None,
) -> "DecodingConfig":
    """Check the options that were given; the configuration has defaults for the others."""
    from unembed.config import SEARCHES, DecodingConfig, parse
    from unembed.errors import ConfigError

    if guided and strategy not in (None, "guided"):
        raise ConfigError(f"--guided means --strategy guided, but --strategy is {strategy}.", "Give one of the two.")
    wanted: dict[str, Any] = {"strategy": "guided" if guided else strategy, **others}
    search: dict[str, Any] = {"effort": effort, "rounds": rounds, "calls": calls}
    if wanted["strategy"] in SEARCHES:
        search["candidates"] = candidates
        wanted[wanted["strategy"]] = {name: value for name, value in search.items() if value is not None}
    elif unused := [name for name, value in search.items() if value is not None]:
        raise ConfigError(
            f"--{unused[0]} is for searches.", "Add --guided or --strategy surrogate, or use --steps instead."
        )
    else:
        wanted["candidates"] = candidates
    given = {name: value for name, value in wanted.items() if value is not None}
    return parse(DecodingConfig, given, "The decoding configuration")


def load_encoder_for(inverter: "Inverter", location: str | None, device: str) -> "Encoder":
    """Load the encoder whose vectors an inverter reads, from ``location`` if the user gives one."""
    return inverter.load_encoder(location, device=device)


def _checked(length: int | None, inverter: "Inverter") -> int | None:
    from unembed.errors import ConfigError

    longest = inverter.info.model.canvas_length
    if length is not None and length > longest:
        raise ConfigError(
            f"--length is {length}, but this inverter writes at most {longest} tokens.", "Give a smaller --length."
        )
    return length


def _record(result: "InvertedText") -> dict[str, Any]:
    """Return a result as JSON has it."""
    record: dict[str, Any] = {"row": result.row}
    if result.id is not None:
        record["id"] = result.id
    if result.stored is not None:
        record["stored_text"] = result.stored
    if result.trip:
        record |= {"original": result.trip.original, "embedded": result.trip.embedded}
    record |= asdict(result.inversion)
    if result.trip:
        record["comparison"] = result.measures
    if result.trace:
        record["trace"] = result.trace
    return record


def _print(result: "InvertedText") -> None:
    from rich.text import Text

    from unembed.cli.animation import MASK

    rows = _heading(result.trip, result.id, result.stored)
    several = any(step["candidate"] for step in result.trace)
    for step in result.trace:
        state = f"{step['mask_rate']:>4.0%} masked"
        state += f"  hypothesis {step['candidate'] + 1}" if several else ""
        state += f"  cosine {step['score']:.3f}" if step["texts_embedded"] else ""
        canvas = " ".join(MASK if token is None else token for token in step["tokens"])
        rows.append((f"pass {step['pass']}", Text(f"{state}  {canvas}")))
    for label, text in [*rows, *_outcome(result, Text(result.inversion.text))]:
        typer.echo(f"{label:<9}  {text.plain}")


def _heading(trip: "RoundTrip | None", identifier: "Id | None", stored: str | None) -> "list[Row]":
    """Return what is known before a vector is inverted: its text in a round trip, else what the source says."""
    from rich.text import Text

    from unembed.text import printable

    if trip is None:
        rows = [("vector", Text(printable(str(identifier))))]
        return rows if stored is None else [*rows, ("stored", Text(printable(stored)))]
    rows = [("original", Text(trip.original))]
    if trip.cut:
        note = f"  (the first {len(trip.ids)} of {trip.tokens_in_all} tokens: this inverter reads no more)"
        rows.append(("cut to", Text(trip.embedded + note)))
    return rows


def _outcome(result: "InvertedText", text: "Text") -> "list[Row]":
    from rich.text import Text

    inversion, measures = result.inversion, result.measures
    if inversion.encoder_calls:
        note = f"cosine {inversion.score:.3f}, {inversion.encoder_calls:,} texts embedded"
    elif inversion.surrogate_calls:
        note = f"cosine {inversion.score:.3f} by the surrogate, {inversion.surrogate_calls:,} texts tried"
    else:
        note = f"{inversion.confidence:.0%} sure, {inversion.passes} passes"
    rows = [("recovered", Text.assemble(text, f"  ({note})"))]
    if measures:
        from unembed.measures import BY_NAME

        rows.append(("compared", Text(", ".join(BY_NAME[name].say(value) for name, value in measures.items()))))
    return rows


def _animate(job: "InversionJob", batches: "Iterable[InputBatch]", console: "Console") -> int:
    """Show results as they come about; return how many there were."""
    from unembed.cli.animation import Animation

    finished = 0
    for single in (single for batch in batches for single in batch.split()):
        if job.interrupted():
            return finished
        heading = _heading(
            single.trips[0] if single.trips else None,
            single.ids[0] if single.ids else None,
            single.stored[0] if single.stored else None,
        )
        with Animation(console, job.painter, heading, job.options.search.call_limit) as animation:
            for result in job.run([single], animation.show):
                text = job.painter.canvas(result.inversion.ids, result.inversion.confidences)
                animation.end([*heading, *_outcome(result, text)])
                finished += 1
    return finished


@contextmanager
def _progress(total: int | None, *, hidden: bool = False) -> "Iterator[Callable[[], None]]":
    """Count results on stderr, unless the results themselves appear in the terminal."""
    from unembed.progress import make_progress

    with make_progress(disable=hidden or not sys.stderr.isatty()) as progress:
        task = progress.add_task("Inverting", total=total)
        yield lambda: progress.advance(task)
