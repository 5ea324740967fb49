"""``unembed evaluate``: how much inverters recover of given texts, as a report. Joins files, inverters and measures."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from unembed.cli.invert import EngineName
from unembed.cli.sources import INVERTER

if TYPE_CHECKING:
    from unembed.evaluation import Subject
    from unembed.evaluation.section import Section
    from unembed.progress import OnProgress
    from unembed.store import Store


# Hypotheses that are reranked where the user does not say how many.
_RERANK = 8


class ProtocolName(StrEnum):
    """Which texts are taken, and whether they are cut."""

    canvas = "canvas"
    natural = "natural"
    both = "both"


def evaluate(
    texts: Annotated[
        list[str],
        typer.Argument(help="Files of texts that the inverters have not seen: .txt (one a line), .jsonl, .csv, ..."),
    ],
    model: Annotated[
        list[str] | None,
        typer.Option(
            "--model",
            "-m",
            help=f"{INVERTER.capitalize()}. Several are compared in Table 1.",
            show_default="the one that comes with unembed",
        ),
    ] = None,
    strategy: Annotated[
        list[str] | None,
        typer.Option(
            help="A decoding strategy; may be repeated. The breakdowns are of the first.",
            show_default="all, confidence first",
        ),
    ] = None,
    protocol: Annotated[
        ProtocolName, typer.Option(help="canvas: texts cut to the canvas, as in the paper; natural: uncut; both.")
    ] = ProtocolName.canvas,
    limit: Annotated[int, typer.Option(min=1, help="Texts per file and protocol.")] = 300,
    guided_limit: Annotated[int, typer.Option(min=1, help="How many of these are also decoded with the encoder.")] = 30,
    rounds: Annotated[
        int | None,
        typer.Option(min=0, help="Largest number of rounds of a guided search.", show_default="as in unembed invert"),
    ] = None,
    rerank: Annotated[
        int | None,
        typer.Option(
            min=0,
            help="Blind hypotheses of the row in which the encoder chooses the nearest of them; 0 for no such row.",
            show_default=f"{_RERANK}, or 0 if a --strategy is given",
        ),
    ] = None,
    brief: Annotated[
        bool, typer.Option("--brief", help="Leave out the strengths of guidance: they take longer than the rest.")
    ] = False,
    store: Annotated[
        Path | None,
        typer.Option(help="The training store, for the nearest-neighbour baseline and the token frequencies."),
    ] = None,
    run: Annotated[
        Path | None, typer.Option(help="The training run of the first model, for its milestones and curves.")
    ] = None,
    output: Annotated[Path, typer.Option("--output", "-o", help="Folder for the report.")] = Path("work/evaluation"),
    encoder: Annotated[
        str | None,
        typer.Option(
            help="The inverters' encoder: a folder, a hub id or an address. Texts are sent to an address only if you "
            "give it here.",
            show_default="the one that each inverter names",
        ),
    ] = None,
    seed: Annotated[
        int, typer.Option(min=0, help="Seed of the choice of texts, of sampling and of the bootstrap.")
    ] = 0,
    bootstrap: Annotated[int, typer.Option(min=1, help="Bootstrap resamples for each interval.")] = 1000,
    engine: Annotated[EngineName, typer.Option(help="What runs the denoiser.")] = EngineName.torch,
    device: Annotated[str, typer.Option(help="auto, cpu, cuda, mps.")] = "auto",
    as_json: Annotated[bool, typer.Option("--json", help="Print the whole report as JSON.")] = False,
) -> None:
    """Measure how much of given texts comes back from their vectors; write tables, curves and examples.

    Example: unembed evaluate held-out.txt --model work/run/best --store work/store --run work/run
    """
    from unembed.checkpoint import DEFAULT
    from unembed.cli.output import show_json, show_result
    from unembed.config import STRATEGIES, DecodingConfig
    from unembed.corpus import read_texts
    from unembed.errors import ConfigError, did_you_mean, from_os_error, require_extra

    for name in strategy or []:
        if name not in STRATEGIES:
            raise ConfigError(f"There is no strategy '{name}'.", f"In --strategy, {did_you_mean(name, STRATEGIES)}")
    model = model or [DEFAULT]
    require_extra("eval", "sacrebleu", "matplotlib")
    try:
        output.mkdir(parents=True, exist_ok=True)  # fail now, not after half an hour
    except OSError as error:
        raise from_os_error(error, f"making the folder {output}") from error
    sources = {name: list(read_texts(source)) for name, source in zip(short_names(texts), texts, strict=True)}

    from unembed.evaluation import EvaluationSettings, load_language_model, to_json, write_report
    from unembed.evaluation import evaluate as measure
    from unembed.evaluation.texts import PROTOCOLS

    subjects = _load(model, short_names(model, parts=2), encoder, engine, device)
    denoisers = [subject.inverter.model for subject in subjects]
    has = {
        "surrogate": all(each.surrogate is not None for each in denoisers),
        "writer": all(each.writes for each in denoisers),
    }
    possible = [name for name in STRATEGIES if has.get(name, True)]
    settings = EvaluationSettings(
        strategies=tuple(dict.fromkeys(strategy or [DecodingConfig().strategy, *possible])),
        protocols=tuple(name for name in PROTOCOLS if protocol in (name, ProtocolName.both)),
        limit=limit,
        guided_limit=guided_limit,
        rounds=rounds,
        rerank=(0 if strategy else _RERANK) if rerank is None else rerank,
        brief=brief,
        seed=seed,
        resamples=bootstrap,
    )
    with show_progress() as on_progress:
        report, timing = measure(
            subjects,
            sources,
            settings,
            store=_open_store(store) if store else None,
            milestones=_load_milestones(run, subjects[0], device) if run else (),
            language_model=load_language_model(),
            on_progress=on_progress,
        )
        inputs = {"texts": texts, "models": model, "store": store and str(store), "run": run and str(run)}
        write_report(output, report, timing, run=run, inputs=inputs)
    if as_json:
        show_json(to_json(report))
    else:
        for section in report.sections:
            title = f"{section.texts}, protocol {section.protocol} (intervals and all other tables are in the report)"
            show_result(_summary(section), title=title, as_json=False)
    typer.echo(f"Report: {output / 'report.md'}", err=True)


def short_names(paths: Sequence[str], *, parts: int = 1) -> list[str]:
    """Return the last ``parts`` parts of each path; more of them if the results would not differ."""
    split = [Path(path).parts for path in paths]
    while len({part[-parts:] for part in split}) < len(set(split)):
        parts += 1
    return ["/".join(part[-parts:]).lstrip("/") for part in split]


def _load(
    folders: Sequence[str], names: Sequence[str], encoder: str | None, engine: EngineName, device: str
) -> "list[Subject]":
    from unembed.cli.invert import load_encoder_for
    from unembed.evaluation import Subject
    from unembed.inverter import Inverter

    subjects = []
    for folder, name in zip(folders, names, strict=True):
        inverter = Inverter.from_pretrained(folder, device=device, engine=engine.value)
        subjects.append(Subject(name, inverter, load_encoder_for(inverter, encoder, device)))
    return subjects


def _load_milestones(run: Path, first: "Subject", device: str) -> "list[Subject]":
    from unembed.errors import ConfigError
    from unembed.evaluation import Subject
    from unembed.inverter import Inverter

    if not run.is_dir():
        raise ConfigError(f"There is no run in {run}.", "Give the training.output of a recipe that was trained.")
    folders = sorted(run.glob("milestone-*"))
    return [
        Subject(folder.name, Inverter.from_pretrained(folder, device=device), first.encoder)  # as trained: torch only
        for folder in folders
    ]


def _summary(section: "Section") -> dict[str, dict[str, Any]]:
    """Return the table of strategies, as much of it as fits a terminal."""
    from unembed.measures import MEASURES

    table = section.table("strategies")
    shown = [measure for measure in MEASURES if measure.everyday]
    return {
        f"{row.name}, {row.mode}": {"n": row.n}
        | {measure.name: measure.show_plainly(row.figures[measure.name].value) for measure in shown}
        for row in (table.rows if table else [])
        if row.figures.keys() >= {measure.name for measure in shown}
    }


def _open_store(folder: Path) -> "Store":
    from unembed.store import Store

    return Store(folder / "train" if (folder / "train").is_dir() else folder)


@contextmanager
def show_progress() -> "Iterator[OnProgress]":
    """Yield what shows progress: a bar that starts again with each stage, or a line per stage outside a terminal."""
    from unembed.progress import make_progress

    with make_progress() as progress:
        task = progress.add_task("Loading", total=None)
        current = ""

        def on_progress(label: str, done: int, total: int) -> None:
            nonlocal current
            if label != current:
                current = label
                progress.reset(task, description=label, total=total)
                if not progress.console.is_terminal:
                    typer.echo(label, err=True)
            progress.advance(task, done)

        yield on_progress
