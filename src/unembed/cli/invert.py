"""``unembed invert``: texts or vectors in, recovered texts out. Knows the options, and what happens in which order."""

from enum import StrEnum
from typing import TYPE_CHECKING, Annotated, Any

import typer

from unembed.cli.sources import InverterName, ResultsPath, Resume, SourceIdColumn, SourceTextColumn

if TYPE_CHECKING:
    from unembed.cli.results import ResultFile
    from unembed.config import DecodingConfig
    from unembed.encoders import Encoder
    from unembed.inverter import Inverter

# More vectors than this are not animated, and not searched unless it is asked for: a search takes seconds for each.
_FEW = 16
# Options that only say something to strategies which do not search. They choose one, if the user names none.
_OF_PASSES = ("steps", "rerank", "guidance", "temperature", "top_k")


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
    model: InverterName = "default",
    strategy: Annotated[
        str | None,
        typer.Option(
            help="writer, sequential, euler, euler-remask, two-stage, confidence, adaptive; or a search: surrogate, "
            "guided with the encoder, or zero for any --encoder, without training.",
            show_default=f"surrogate for up to {_FEW} vectors, writer for more, where the inverter has them; else "
            "confidence",
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
    plus: Annotated[
        list[str] | None,
        typer.Option(help="Add this first: a file of vectors, a database or a text; one vector, or one for each row."),
    ] = None,
    minus: Annotated[
        list[str] | None,
        typer.Option(help="Take this away first: a file of vectors, a database or a text, as for --plus."),
    ] = None,
    mean: Annotated[bool, typer.Option("--mean", help="Invert the mean of all vectors: one text.")] = False,
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
            "Texts are sent to an address only if you give it here. With --strategy zero, any encoder.",
            show_default="the encoder that the inverter names",
        ),
    ] = None,
    language_model: Annotated[
        str | None,
        typer.Option(
            help="With --strategy zero: a causal language model, a folder or a hub id.",
            show_default="SmolLM2-135M-Instruct, from its package",
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
    from unembed.cli.arithmetic import open_arithmetic
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
        language_model=language_model,
        rerank=rerank,
        steps=steps,
        guidance=guidance,
        temperature=temperature,
        top_k=top_k,
        seed=seed,
    )
    if options.strategy == "zero":
        _check_zero(model, encoder, length)
    results = open_results(output, resume)
    given = open_input(source or [], (column, id_column, text_column), limit, batch_size)
    rows = len(given) if isinstance(given, list) else given.rows
    arithmetic = open_arithmetic(plus or [], minus or [], mean=mean, resume=resume)
    given = skip_finished(given, results)
    done = results.rows if results else 0
    with loading(f"the inverter {model}"):
        folder = fetch_checkpoint(model)
        # This import takes seconds, so options and names are checked before it.
        from unembed.cli.animation import Painter, make_console
        from unembed.cli.display import animate, list_results, write_results
        from unembed.cli.job import InversionJob
        from unembed.inverter import Inverter

        inverter = Inverter.from_pretrained(folder, device=device, engine=engine.value)
    if "strategy" not in options.model_fields_set and not arithmetic:
        few = rows is not None and rows <= _FEW
        many = inverter.strategy_for_many if engine is EngineName.torch else options.strategy  # graphs do not write
        if few and inverter.searches_alone:
            search = options.surrogate.model_copy(update={"candidates": candidates} if candidates else {})
            options = options.model_copy(update={"strategy": "surrogate", "surrogate": search})
        else:
            options = options.model_copy(update={"strategy": many})
    loaded_encoder = None
    if isinstance(given, list) or options.needs_encoder or (arithmetic and arithmetic.needs_encoder):
        with loading(f"the encoder {encoder or inverter.info.encoder.name}"):
            loaded_encoder = (
                _load_any(encoder, device)
                if options.strategy == "zero" and encoder
                else load_encoder_for(inverter, encoder, device)
            )
    # Vectors are checked before anything is loaded for them, so that happens later.
    if options.strategy == "zero" and loaded_encoder is not None and isinstance(given, list):
        with loading("the language model and its words (a minute, the first time)"):
            inverter.prepare_zero(loaded_encoder, options.zero.language_model)
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
        if arithmetic:
            batches = arithmetic.apply(batches, loaded_encoder)
            total = 1 if mean else total
        if results:
            finished = write_results(job, batches, total, results)
        elif watched and total is not None and total <= _FEW:
            finished = animate(job, batches, console)
        else:
            finished = list_results(job, batches, total, as_json=as_json)
        if interrupted():
            _end_early(finished, best_so_far=options.searches, results=results)
    if not finished and not done:
        typer.echo("There were no vectors to invert.", err=True)


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
    language_model: str | None,
    **others: float | None,
) -> "DecodingConfig":
    """Check the options that were given; the configuration has defaults for the others."""
    from unembed.config import SEARCHES, ZERO, DecodingConfig, parse
    from unembed.errors import ConfigError

    if guided and strategy not in (None, "guided"):
        raise ConfigError(f"--guided means --strategy guided, but --strategy is {strategy}.", "Give one of the two.")
    search: dict[str, Any] = {"effort": effort, "rounds": rounds, "calls": calls}
    if strategy is None and not guided:
        of_passes = [name for name in _OF_PASSES if others[name] is not None]
        if of_passes:
            strategy = "confidence"
        elif any(value is not None for value in search.values()):
            strategy = "surrogate"
    wanted: dict[str, Any] = {"strategy": "guided" if guided else strategy, **others}
    if wanted["strategy"] == ZERO:
        search["language_model"] = language_model
    elif language_model is not None:
        raise ConfigError("--language-model is for one strategy only.", "Add --strategy zero.")
    if wanted["strategy"] in (*SEARCHES, ZERO):
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


def _check_zero(model: str, encoder: str | None, length: int | None) -> None:
    """Refuse what a search without training cannot do, before anything is loaded."""
    from unembed.errors import ConfigError
    from unembed.hub import DEFAULT

    if encoder is None and model == DEFAULT:
        raise ConfigError(
            "--strategy zero asks the encoder that made the vectors, and does not know which it was.",
            "Name it: --encoder bge-small-en-v1.5, for example. unembed identify finds out which known one it was.",
        )
    if length is not None:
        raise ConfigError("--strategy zero finds the length itself.", "Leave out --length.")


def _load_any(name: str, device: str) -> "Encoder":
    """Load an encoder that no inverter needs to know."""
    from unembed.encoders import loading

    return loading.load_encoder(name, device=device)


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
