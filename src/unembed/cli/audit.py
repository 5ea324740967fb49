"""``unembed audit``: how much of its texts a vector database gives away, as a report."""

import shlex
import sys
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from unembed.cli.distribution import RayAddress, WorkerCount, check_cluster, shards_on
from unembed.cli.invert import EngineName
from unembed.cli.sources import InverterName, SourceColumn, SourceIdColumn, SourceTextColumn, SourceUri

if TYPE_CHECKING:
    from unembed.auditing import Audit
    from unembed.auditing.result import AttackerName, Row
    from unembed.encoders import Encoder
    from unembed.inverter import Inverter

EXIT_CODES = {"below": 0, "above": 3, "undecided": 4}
"""By the verdict, so that a build can fail."""
WORSE = 5
"""When something got worse than in the baseline, unless the verdict says more."""
_INTERRUPTED = 1
_UNFINISHED = ".unfinished"
_BATCH = 1024


class ReportFormat(StrEnum):
    """What a report can be written as, beside HTML and JSON."""

    markdown = "markdown"
    pdf = "pdf"
    sarif = "sarif"
    junit = "junit"


def audit(
    context: typer.Context,
    uri: SourceUri,
    output: Annotated[Path, typer.Option("--output", "-o", help="Folder for the report.")] = Path("work/audit"),
    size: Annotated[int, typer.Option(min=1, help="How many vectors are drawn at random.")] = 300,
    everything: Annotated[bool, typer.Option("--all", help="Audit all vectors instead of a sample.")] = False,
    guided: Annotated[
        int, typer.Option(min=0, help="How many of these are also inverted with the encoder's help.")
    ] = 40,
    minutes: Annotated[float, typer.Option(min=0.0, help="Time limit for guided inversion.")] = 10.0,
    fail_over: Annotated[
        float,
        typer.Option(
            min=0.0,
            max=1.0,
            help="The threshold. Exit with 3 when a greater share of the texts can be read back, with 4 when that is "
            "undecided.",
        ),
    ] = 0.1,
    show_text: Annotated[
        bool, typer.Option("--show-text", help="Show texts in the report, and make it readable by you only.")
    ] = False,
    also: Annotated[
        list[ReportFormat] | None,
        typer.Option("--format", help="Write the report in this format too, beside HTML and JSON. May be repeated."),
    ] = None,
    baseline: Annotated[
        Path | None,
        typer.Option(
            help="A report.json of an earlier audit. The report says what got worse; then the exit code is 5, unless "
            "the verdict gives another."
        ),
    ] = None,
    calibrate: Annotated[
        str | None,
        typer.Option(
            help="Texts like yours, one per line, for the estimate where the database holds no texts.",
            show_default="built-in texts of many kinds",
        ),
    ] = None,
    detect: Annotated[
        list[str] | None,
        typer.Option(
            help="Count another kind of information: NAME=REGEX, for example 'tickets=TCK-[0-9]+'. May be repeated."
        ),
    ] = None,
    terms: Annotated[
        list[str] | None,
        typer.Option(help="Count the terms in this file, one per line; the kind has the file's name. May be repeated."),
    ] = None,
    resume: Annotated[
        bool, typer.Option(help="Go on with a stopped audit of the same vectors, or start it again.")
    ] = True,
    column: SourceColumn = None,
    id_column: SourceIdColumn = None,
    text_column: SourceTextColumn = None,
    model: InverterName = "default",
    encoder: Annotated[
        str | None,
        typer.Option(
            help="The encoder that made the vectors: its name or its folder.",
            show_default="named by the database, or recognised from the vectors",
        ),
    ] = None,
    seed: Annotated[int, typer.Option(min=0, help="Seed of the sample and of the intervals.")] = 0,
    bootstrap: Annotated[int, typer.Option(min=1, help="Bootstrap resamples for each interval.")] = 1000,
    engine: Annotated[EngineName, typer.Option(help="What runs the denoiser.")] = EngineName.torch,
    device: Annotated[str, typer.Option(help="auto, cpu, cuda, mps.")] = "auto",
    ray: RayAddress = None,
    workers: WorkerCount = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print the whole report as JSON, with a row per vector.")] = (
        False
    ),
) -> None:
    """Find out how much of its texts a vector database gives away, and write a report.

    The database is only read. Exit codes: 0 if the share of texts that can be read back is below --fail-over, 3 if it
    is above, 4 if it is undecided, 5 if something got worse than in --baseline, 2 for a mistake that you can fix.
    Ctrl-C ends it with a report of what is done; the same command goes on from there.

    Example: unembed audit chroma:./db#notes --output work/audit
    """
    from dataclasses import replace
    from functools import partial

    from unembed.auditing.baseline import compare, read_baseline
    from unembed.auditing.leaks import LeakDetectors, read_pattern, read_terms
    from unembed.cli.evaluate import show_progress
    from unembed.cli.flags import name_flags
    from unembed.cli.interrupt import early_end
    from unembed.cli.output import show_json
    from unembed.connectors import open_vectors
    from unembed.corpus import read_texts
    from unembed.errors import from_os_error
    from unembed.report.pdf import find_browser
    from unembed.text import printable_lines

    check_cluster(ray, workers)
    try:
        output.mkdir(parents=True, exist_ok=True)  # fail now, not after half an hour
    except OSError as error:
        raise from_os_error(error, f"making the folder {output}") from error
    formats = [each.value for each in also or []]
    earlier = None if baseline is None else read_baseline(baseline)
    if "pdf" in formats:
        find_browser()
    known = None if calibrate is None else list(read_texts(calibrate))
    detectors = LeakDetectors([*map(read_pattern, detect or []), *map(read_terms, terms or [])])
    source = open_vectors(uri, column=column, id_column=id_column, text_column=text_column, batch_rows=_BATCH)

    from unembed.auditing import AuditSettings, run_audit
    from unembed.auditing.recover import load_worker
    from unembed.inverter import Inverter
    from unembed.report import FILES, to_json, write_report

    inverter = Inverter.from_pretrained(model, device=device, engine=engine.value)
    settings = AuditSettings(
        size=None if everything else size,
        guided=guided,
        minutes=minutes,
        fail_over=fail_over,
        seed=seed,
        resamples=bootstrap,
        show_text=show_text,
        detectors=detectors,
    )
    found = find_encoder(inverter, encoder, device)
    known_encoder = None if found is None else found.description
    load = partial(load_worker, model, device, engine.value, inverter.info, encoder, known_encoder)
    with (
        shards_on(ray, workers, device) as map_shards,
        show_progress() as on_progress,
        early_end() as interrupted,
    ):
        result = run_audit(
            source,
            inverter,
            settings,
            encoder=found,
            unfinished=output / _UNFINISHED,
            resume=resume,
            asked=encoder,
            calibration=known,
            calibration_name=Path(calibrate).name if calibrate else "",
            command=typed_command(),
            on_progress=on_progress,
            on_encoder=lambda sentence: typer.echo(f"Encoder: {printable_lines(sentence)}", err=True),
            on_rows=_show_so_far,
            interrupted=interrupted,
            map_shards=map_shards,
            load_worker=None if ray is None else load,
        )
        if earlier is not None:
            result = replace(result, comparison=compare(result, earlier))
        write_report(output, result, formats)
        stopped = interrupted()
    if as_json:
        show_json(to_json(result))
    else:
        _show(result, lambda text: name_flags(text, context.command.params))
    for name in ("report.html", *(FILES[each] for each in formats)):
        typer.echo(f"Report: {output / name}", err=True)
    if stopped:
        typer.echo("Interrupted. The same command goes on from here.", err=True)
        raise typer.Exit(_INTERRUPTED)
    worse = result.comparison is not None and result.comparison.worse
    raise typer.Exit(EXIT_CODES[result.verdict.outcome] or (WORSE if worse else 0))


def find_encoder(inverter: "Inverter", location: str | None, device: str) -> "Encoder | None":
    """Load the encoder; return None if the user did not name it and it is not installed."""
    from unembed.cli.invert import load_encoder_for
    from unembed.errors import EncoderError, MissingExtraError
    from unembed.text import printable_lines

    try:
        return load_encoder_for(inverter, location, device)
    except (EncoderError, MissingExtraError) as error:
        if location is not None:
            raise
        typer.echo(
            f"The encoder is not available, so guided inversion is left out: {printable_lines(error.problem)}", err=True
        )
        return None


def typed_command() -> str:
    """Return what was typed, without a password in it."""
    from unembed.connectors import mask_passwords

    return shlex.join(["unembed", *map(mask_passwords, sys.argv[1:])])


def _show_so_far(attacker: "AttackerName", rows: "list[Row]", total: int) -> None:
    """Print the share of readable texts as soon as some vectors are done."""
    from unembed.measures import percent

    share = sum(row.values["readable"] for row in rows) / len(rows)
    typer.echo(f"{attacker}: {len(rows):,} of {total:,} vectors, {percent(share)} read back in substance", err=True)


def _show(result: "Audit", name_flags: Any) -> None:
    from unembed.auditing.table import summarise
    from unembed.auditing.verdict import explain, headline
    from unembed.cli.output import show_result
    from unembed.measures import percent

    show_result(summarise(result), title=f"{result.source.name}: {result.source.vectors:,} vectors", as_json=False)
    typer.echo(f"{headline(result)}.")
    for sentence in explain(result):
        typer.echo(name_flags(sentence))
    if result.comparison is None:
        return
    worse = result.comparison.worse
    typer.echo(f"Since the baseline, {len(worse)} of {len(result.comparison.changes)} figures got worse.")
    for change in worse:
        typer.echo(
            f"{change.label}, {change.attacker} attacker: {percent(change.before.value)}, now "
            f"{percent(change.after.value)}"
        )
