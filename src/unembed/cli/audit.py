"""``unembed audit``: how much of its texts a vector database gives away, as a report."""

import shlex
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from unembed.cli.invert import EngineName
from unembed.cli.sources import SourceColumn, SourceIdColumn, SourceTextColumn, SourceUri

if TYPE_CHECKING:
    from unembed.audit import Audit
    from unembed.encoders import Encoder
    from unembed.inverter import Inverter

EXPOSED = 3
"""Exit code when more texts are readable than the threshold allows, so that a build can fail."""
_UNFINISHED = ".unfinished"
_BATCH = 1024
_SHOWN = ("readable", "token_f1", "exact_match")


def audit(
    uri: SourceUri,
    output: Annotated[Path, typer.Option("--output", "-o", help="Folder for the report.")] = Path("work/audit"),
    size: Annotated[int, typer.Option(min=1, help="How many vectors are drawn at random.")] = 300,
    everything: Annotated[bool, typer.Option("--all", help="Audit all vectors instead of a sample.")] = False,
    guided: Annotated[
        int, typer.Option(min=0, help="How many of these are also inverted with the encoder's help.")
    ] = 20,
    minutes: Annotated[float, typer.Option(min=0.0, help="Time limit for guided inversion.")] = 10.0,
    fail_over: Annotated[
        float,
        typer.Option(min=0.0, max=1.0, help="Exit with code 3 when more than this share of the texts is readable."),
    ] = 0.1,
    show_text: Annotated[bool, typer.Option("--show-text", help="Show texts in the report instead of dots.")] = False,
    calibrate: Annotated[
        str | None,
        typer.Option(
            help="Texts like yours, one per line, for the estimate where the database holds no texts.",
            show_default="built-in sentences",
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
    column: SourceColumn = None,
    id_column: SourceIdColumn = None,
    text_column: SourceTextColumn = None,
    model: Annotated[str, typer.Option("--model", "-m", help="An inverter: a folder or a hub id.")] = "default",
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
    as_json: Annotated[bool, typer.Option("--json", help="Print the whole report as JSON.")] = False,
) -> None:
    """Find out how much of its texts a vector database gives away, and write a report.

    The database is only read. The exit code is 3 when the share of readable texts is above --fail-over, and else 0.

    Example: unembed audit chroma:./db#notes --output work/audit
    """
    from unembed.audit.leaks import LeakDetectors, read_pattern, read_terms
    from unembed.cli.evaluate import show_progress
    from unembed.cli.output import show_json
    from unembed.connectors import open_vectors
    from unembed.corpus import read_texts
    from unembed.errors import from_os_error, require_extra

    require_extra("eval", "sacrebleu")
    try:
        output.mkdir(parents=True, exist_ok=True)  # fail now, not after half an hour
    except OSError as error:
        raise from_os_error(error, f"making the folder {output}") from error
    known = None if calibrate is None else list(read_texts(calibrate))
    detectors = LeakDetectors([*map(read_pattern, detect or []), *map(read_terms, terms or [])])
    source = open_vectors(uri, column=column, id_column=id_column, text_column=text_column, batch_rows=_BATCH)

    from unembed.audit import AuditSettings
    from unembed.audit import audit as examine
    from unembed.audit.run import BUILT_IN
    from unembed.inverter import Inverter
    from unembed.report import to_json, write_report

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
    with show_progress() as on_progress:
        result = examine(
            source,
            inverter,
            settings,
            encoder=_find_encoder(inverter, encoder, device),
            unfinished=output / _UNFINISHED,
            asked=encoder,
            calibration=known,
            calibration_name=BUILT_IN if calibrate is None else Path(calibrate).name,
            command=_command(),
            on_progress=on_progress,
        )
        write_report(output, result)
    if as_json:
        show_json(to_json(result))
    else:
        _show(result)
    typer.echo(f"Report: {output / 'report.html'}", err=True)
    if result.verdict.exposed:
        raise typer.Exit(EXPOSED)


def _find_encoder(inverter: "Inverter", location: str | None, device: str) -> "Encoder | None":
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


def _command() -> str:
    """Return what was typed, without a password in it."""
    from unembed.connectors import mask_passwords

    return shlex.join(["unembed", *map(mask_passwords, sys.argv[1:])])


def _show(result: "Audit") -> None:
    from unembed.cli.output import show_result
    from unembed.measures import BY_NAME

    rows = {}
    for attack in result.attacks:
        row: dict[str, object] = {"n": attack.n}
        for name in _SHOWN:
            figure, show = attack.figures[name], BY_NAME[name].show_plainly
            row[name] = f"{show(figure.value)} ({show(figure.low)} to {show(figure.high)})"
        rows[f"{attack.name}, {'measured' if attack.known else 'estimated'}"] = row
    show_result(rows, title=f"{result.source.name}: {result.source.vectors:,} vectors", as_json=False)
    verdict = result.verdict
    typer.echo(
        f"{'Exposed' if verdict.exposed else 'Below the threshold'}: {verdict.readable.value:.1%} of the texts come "
        f"back with at least half of their words ({verdict.attacker}); the threshold is {verdict.threshold:.1%}."
    )
