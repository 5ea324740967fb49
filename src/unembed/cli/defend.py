"""``unembed defend``: what each defence hides and costs; a defended copy of vectors; and the way back with the key."""

import shutil
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from typer.core import TyperGroup

from unembed.cli.flags import Command
from unembed.cli.sources import SOURCE_HELP, InverterName, SourceColumn, SourceIdColumn, SourceTextColumn, SourceUri

if TYPE_CHECKING:
    from unembed.defending.result import Setting

_MEASURE = "measure"
_UNFINISHED = ".unfinished"
_VECTORS = ".vectors"
_BATCH = 1024
CHAIN_HELP = (
    "Defences in the order in which they are applied: noise:R, noise-fresh:R, laplace:EPSILON, mix:W, int8 (to int2), "
    "binary, pq:PARTS, truncate:K, pca:K, learned:K, rotate, rotate-cells:N. For example 'truncate:256,int8'."
)


class _Defend(TyperGroup):
    """``unembed defend URI`` without a further verb measures."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Put in the verb that is left out."""
        if args and args[0] not in self.commands:
            args = [_MEASURE, *args]
        return super().parse_args(ctx, args)


defend = typer.Typer(
    cls=_Defend,
    no_args_is_help=True,
    help="What each defence hides and costs: unembed defend URI. A defended copy: unembed defend apply.",
)

Output = Annotated[
    str,
    typer.Option(
        "--output",
        "-o",
        help="A new FILE.npy, FILE.jsonl, FILE.parquet, FILE.faiss, chroma:FOLDER#name or lancedb:FOLDER#name.",
    ),
]
KeepTexts = Annotated[bool, typer.Option("--keep-texts", help="Write the stored texts, too.")]
AsJson = Annotated[bool, typer.Option("--json", help="Print the result as JSON.")]


@defend.command("apply", cls=Command)
def apply(
    uri: SourceUri,
    output: Output,
    with_chain: Annotated[str | None, typer.Option("--with", help=CHAIN_HELP)] = None,
    key: Annotated[
        Path | None,
        typer.Option(help="Where the key file is written. Without --with: the key file whose chain is applied again."),
    ] = None,
    keep_texts: KeepTexts = False,
    column: SourceColumn = None,
    id_column: SourceIdColumn = None,
    text_column: SourceTextColumn = None,
    seed: Annotated[
        int | None,
        typer.Option(
            min=0, help="For repeatable experiments only: whoever knows it knows the key.", show_default="secret"
        ),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Write a defended copy of vectors to a new file or database. The original is only read.

    Beside the copy, a key file that only you can read (for chains that have something to keep) and a note that says
    which chain was applied.

    Example: unembed defend apply chroma:./db#notes --with rotate,int8 --output work/defended.npy
    """
    from unembed.cli.evaluate import show_progress
    from unembed.connectors import open_vectors
    from unembed.defences import parse_chain
    from unembed.defending.copying import apply_chain, refuse_defended
    from unembed.errors import ConfigError

    if with_chain is None and key is None:
        raise ConfigError("There is no chain of defences to apply.", "Give one, for example: --with truncate:256,int8")
    steps = None if with_chain is None else parse_chain(with_chain)
    refuse_defended(uri)
    source = open_vectors(uri, column=column, id_column=id_column, text_column=text_column, batch_rows=_BATCH)
    with show_progress() as on_progress:
        copy = apply_chain(
            source,
            output,
            steps=steps,
            key=None if steps else key,
            new_key=key if steps else None,
            seed=seed,
            keep_texts=keep_texts,
            on_progress=on_progress,
        )
    _show_copy(copy, as_json)


@defend.command("undo", cls=Command)
def undo(
    uri: SourceUri,
    output: Output,
    key: Annotated[Path, typer.Option(help="The key file that unembed defend apply wrote.")],
    keep_texts: KeepTexts = False,
    column: SourceColumn = None,
    id_column: SourceIdColumn = None,
    text_column: SourceTextColumn = None,
    as_json: AsJson = False,
) -> None:
    """Write the vectors of a defended copy as they were before a secret rotation, with its key.

    Example: unembed defend undo work/defended.npy --key work/defended.npy.key --output work/restored.npy
    """
    from unembed.cli.evaluate import show_progress
    from unembed.connectors import open_vectors
    from unembed.defending.copying import undo_chain

    source = open_vectors(uri, column=column, id_column=id_column, text_column=text_column, batch_rows=_BATCH)
    with show_progress() as on_progress:
        copy = undo_chain(source, uri, key, output, keep_texts=keep_texts, on_progress=on_progress)
    _show_copy(copy, as_json)


@defend.command(_MEASURE, cls=Command)
def measure(
    uri: Annotated[
        str | None,
        typer.Argument(help=f"{SOURCE_HELP} Leave it out to measure on --public texts alone."),
    ] = None,
    public: Annotated[
        list[str] | None,
        typer.Option(
            help="A file of texts to attack, or a folder with judged queries in BEIR's format to search "
            "(FOLDER#text leaves out titles). May be repeated."
        ),
    ] = None,
    output: Annotated[Path, typer.Option("--output", "-o", help="Folder for the report.")] = Path("work/defend"),
    with_chain: Annotated[
        list[str] | None,
        typer.Option("--with", help=f"{CHAIN_HELP} May be repeated.", show_default="every defence"),
    ] = None,
    strengths: Annotated[int, typer.Option(min=1, max=5, help="How many strengths of each defence.")] = 3,
    attackers: Annotated[
        str,
        typer.Option(
            help="Which attackers try, separated by commas: naive, denoised, trained, guided, averaged, unmixed, "
            "pairs, unpaired, key.",
            show_default="all of them",
        ),
    ] = "",
    size: Annotated[int, typer.Option(min=1, help="How many texts of each store are attacked.")] = 100,
    guided: Annotated[
        int, typer.Option(min=0, help="How many of these the guided attacker tries; it takes seconds for each.")
    ] = 10,
    guided_strengths: Annotated[
        int, typer.Option(min=1, max=5, help="How many strengths of each defence the guided attacker tries.")
    ] = 1,
    guided_at: Annotated[
        list[str] | None,
        typer.Option(
            help="A defence that the guided attacker tries. May be repeated.", show_default="by --guided-strengths"
        ),
    ] = None,
    calls: Annotated[int, typer.Option(min=1, help="Texts that the guided attacker embeds for each vector.")] = 100,
    own: Annotated[int, typer.Option(min=50, help="Texts that attackers have of their own, to train with.")] = 2000,
    texts: Annotated[
        Path | None,
        typer.Option(help="The attackers' own texts, one per line.", show_default="short texts that come with unembed"),
    ] = None,
    largest: Annotated[int, typer.Option(min=20, help="Texts of a --public file that are stored together.")] = 3000,
    filler: Annotated[
        Path | None, typer.Option(help="Texts that are stored with those of --public files, and not attacked.")
    ] = None,
    canaries: Annotated[int, typer.Option(min=0, help="Pairs of secret sentences that are put into each store.")] = 2,
    show_text: Annotated[
        bool, typer.Option("--show-text", help="Show texts in the report, and make it readable by you only.")
    ] = False,
    column: SourceColumn = None,
    id_column: SourceIdColumn = None,
    text_column: SourceTextColumn = None,
    model: InverterName = "default",
    encoder: Annotated[
        str | None,
        typer.Option(
            help="The encoder that made the vectors: its name or its folder.", show_default="the inverter's own"
        ),
    ] = None,
    seed: Annotated[int, typer.Option(min=0, help="Of samples, keys, noise and intervals.")] = 0,
    bootstrap: Annotated[int, typer.Option(min=1, help="Bootstrap resamples for each interval.")] = 1000,
    device: Annotated[str, typer.Option(help="auto, cpu, cuda, mps.")] = "auto",
    as_json: Annotated[bool, typer.Option("--json", help="Print the whole report as JSON.")] = False,
) -> None:
    """Find out what each defence hides from which attacker, and what it costs a search; write a report.

    The store is only read. If the run is stopped, the same command goes on with the next setting. To make a defended
    copy: unembed defend apply. To take a secret rotation back: unembed defend undo.

    Example: unembed defend chroma:./db#notes --output work/defend
    """
    from unembed.cli.audit import find_encoder, typed_command
    from unembed.cli.evaluate import show_progress
    from unembed.cli.output import show_json
    from unembed.connectors import open_vectors
    from unembed.corpus.judged import is_judged_folder
    from unembed.defences import check_chain, parse_chain
    from unembed.defending.copying import refuse_defended
    from unembed.errors import ConfigError, from_os_error

    files = [name for name in public or [] if not is_judged_folder(name)]
    folders = [name for name in public or [] if name not in files]
    if uri is None and not files:
        raise ConfigError("There is nothing to measure.", "Give a store, or a file of texts: --public FILE.")
    kinds = _attacker_kinds(attackers)
    chosen = {chain: parse_chain(chain) for chain in with_chain or []}
    if uri is not None:
        refuse_defended(uri)
    try:
        output.mkdir(parents=True, exist_ok=True)  # fail now, not after half an hour
    except OSError as error:
        raise from_os_error(error, f"making the folder {output}") from error
    source = None
    if uri is not None:
        source = open_vectors(uri, column=column, id_column=id_column, text_column=text_column, batch_rows=_BATCH)

    from unembed.defending.attackers import Attackers
    from unembed.defending.preparing import (
        VectorCache,
        collection_of_folder,
        own_texts,
        store_of_source,
        store_of_texts,
    )
    from unembed.defending.run import DefendSettings, measure_defences
    from unembed.defending.strengths import choose, families
    from unembed.inverter import Inverter
    from unembed.report import defences_to_json, write_defences

    inverter = Inverter.from_pretrained(model, device=device)
    found = find_encoder(inverter, encoder, device)
    if found is None:
        raise ConfigError(
            "The encoder is needed: attackers embed texts of their own.", "Run: pip install 'unembed[encoders]'"
        )
    if chosen:
        chains: dict[str, list[str]] = {}
        for chain, steps in chosen.items():
            check_chain(steps, inverter.info.encoder.dim)
            chains.setdefault(steps[-1].kind.name, []).append(chain)
    else:
        chains = {name: choose(each, strengths) for name, each in families(inverter.info.encoder.dim).items()}
    searched = _guided_at(guided_at, chains, None if chosen else guided_strengths)
    with show_progress() as on_progress:
        cache = VectorCache(found, output / _VECTORS, on_progress)
        stores, said = [], list[str]()
        if source is not None:
            store, said = store_of_source(source, inverter, found, size=size, seed=seed, asked=encoder)
            stores.append(store)
        stores += [
            store_of_texts(Path(name), inverter, cache, size=size, largest=largest, seed=seed, filler=filler)
            for name in files
        ]
        collections = [collection_of_folder(name, cache) for name in folders]
        report = measure_defences(
            stores,
            collections,
            chains,
            Attackers(
                inverter,
                found,
                own_texts(texts, inverter, cache, own),
                kinds=kinds,
                guided=guided + 2 * canaries if guided else 0,
                calls=calls,
                seed=seed,
                on_progress=on_progress,
            ),
            DefendSettings(
                canary_pairs=canaries,
                seed=seed,
                resamples=bootstrap,
                show_text=show_text,
                guided_at=searched,
            ),
            unfinished=output / _UNFINISHED,
            assumptions=said,
            command=typed_command(),
            on_progress=on_progress,
            on_setting=_show_setting,
        )
    write_defences(output, report)
    shutil.rmtree(output / _UNFINISHED, ignore_errors=True)
    if as_json:
        show_json(defences_to_json(report))
    else:
        for sentence in report.recommendation:
            typer.echo(sentence)
    typer.echo(f"Report: {output / 'defences.html'}", err=True)


def _attacker_kinds(typed: str) -> tuple[str, ...]:
    from unembed.defending.attackers import DESCRIPTIONS
    from unembed.errors import ConfigError, did_you_mean

    kinds = tuple(name.strip() for name in typed.split(",") if name.strip()) or tuple(DESCRIPTIONS)
    for kind in kinds:
        if kind not in DESCRIPTIONS:
            raise ConfigError(
                f"There is no attacker '{kind}': {did_you_mean(kind, DESCRIPTIONS)}", "Check --attackers."
            )
    if "naive" not in kinds:
        raise ConfigError(
            "The naive attacker must be among the attackers: the floor is measured with it.", "Add naive."
        )
    return kinds


def _guided_at(named: list[str] | None, chains: dict[str, list[str]], strengths: int | None) -> tuple[str, ...]:
    """Return the chains that the guided attacker tries: those named, or so many of each defence; None for all."""
    from unembed.defending.strengths import choose
    from unembed.errors import ConfigError, did_you_mean

    measured = [chain for each in chains.values() for chain in each]
    for chain in named or []:
        if chain not in measured:
            raise ConfigError(
                f"'{chain}' is not among the defences that are measured: {did_you_mean(chain, measured)}",
                "Check --guided-at, or add it with --with.",
            )
    if named:
        return tuple(named)
    return tuple(chain for each in chains.values() for chain in choose(each, strengths or len(each)))


def _show_setting(setting: "Setting") -> None:
    """Print what is known of a setting as soon as it is measured."""
    guided = "" if setting.guided_leakage is None else f"; guided {setting.guided_leakage:.3f}"
    typer.echo(
        f"{setting.name}: F1 {setting.leakage:.3f} by {setting.leakages[0].strongest_blind.name}{guided}; "
        f"{setting.searches[0].measure} {setting.utility:.3f}; {setting.seconds:.0f} s",
        err=True,
    )


def _show_copy(copy: Any, as_json: bool) -> None:
    from unembed.cli.output import show_json
    from unembed.measures import percent

    facts = {
        "output": str(copy.path),
        "chain": str(copy.chain),
        "vectors": copy.rows,
        "different": copy.different,
        "not_undone": copy.not_undone,
        "bytes_per_vector": copy.chain.bytes_per_vector,
        "key": None if copy.key is None else str(copy.key),
    }
    if as_json:
        show_json(facts)
        return
    typer.echo(f"{copy.path}: {copy.rows:,} vectors, {copy.different:,} of them different.")
    if copy.not_undone:
        typer.echo(
            f"About {percent(copy.not_undone)} cannot be turned back with the key: too little is left of them. "
            "Keep the original vectors.",
            err=True,
        )
    if copy.key is not None:
        typer.echo(
            f"Key: {copy.key}. Keep it apart from the vectors, and keep a copy: without it nothing can be undone."
        )
