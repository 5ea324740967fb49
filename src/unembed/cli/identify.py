"""``unembed identify``: which known encoder made vectors. Knows how the evidence is shown."""

from typing import TYPE_CHECKING, Annotated, Any

import typer

from unembed.cli.sources import SourceColumn, SourceTextColumn, SourceUri

if TYPE_CHECKING:
    import numpy as np

    from unembed.connectors import VectorSource
    from unembed.identification import Candidate, Identification
    from unembed.identification.known import Load

_BATCH = 1024


def identify(
    uri: SourceUri,
    limit: Annotated[int, typer.Option(min=1, help="Look at this many vectors, the first ones.")] = 300,
    column: SourceColumn = None,
    text_column: SourceTextColumn = None,
    ask: Annotated[
        bool, typer.Option(help="Embed up to 32 stored texts with the installed encoders, and compare the vectors.")
    ] = True,
    encoder: Annotated[
        list[str] | None,
        typer.Option(help="Ask this encoder, too: its folder or its hub id. May be repeated."),
    ] = None,
    device: Annotated[str, typer.Option(help="auto, cpu, cuda, mps.")] = "auto",
    as_json: Annotated[bool, typer.Option("--json", help="Print the result as JSON.")] = False,
) -> None:
    """Find out which known encoder made vectors, from stored texts, the database's word, and fingerprints.

    Nothing leaves this machine. The exit code is 0 whatever the verdict: identified, likely, undecided or unknown.

    Example: unembed identify chroma:./db#notes
    """
    from unembed.cli.output import show_json
    from unembed.connectors import open_vectors
    from unembed.identification import identify as find_out

    source = open_vectors(uri, column=column, text_column=text_column, batch_rows=_BATCH)
    vectors, texts = _read(source, limit)
    found = find_out(
        vectors,
        texts,
        storage=source.storage,
        encoders=_encoders(vectors.shape[1], encoder or [], device) if ask else None,
        on_ask=lambda name: typer.echo(f"Comparing stored texts: {name}", err=True),
    )
    if as_json:
        show_json(_to_json(source.name, found))
    else:
        _show(source.name, found)


def _read(source: "VectorSource", limit: int) -> "tuple[np.ndarray, list[str | None]]":
    """Return the first vectors of a source, and their texts where it has them."""
    from collections import Counter

    import numpy as np

    from unembed.errors import VectorError

    parts: list[np.ndarray] = []
    texts: list[str | None] = []
    skipped: Counter[str] = Counter()
    for batch in source.usable(skipped):
        batch = batch.take(range(min(len(batch), limit - len(texts))))
        parts.append(batch.vectors)
        texts += batch.texts or [None] * len(batch)
        if len(texts) >= limit:
            break
    for what, number in skipped.items():
        if number:
            typer.echo(f"Skipped: {number:,} vectors that are {what}.", err=True)
    if not parts:
        raise VectorError(f"{source.name} holds no vectors that can be read.", "Check the address.")
    return np.concatenate(parts), texts


def _encoders(dim: int, named: list[str], device: str) -> "dict[str, Load]":
    """Return the encoders that are asked: those on this machine, and those that the user names."""
    from unembed.encoders import sends_texts
    from unembed.encoders.catalogue import known_name
    from unembed.errors import ConfigError
    from unembed.identification import installed_encoders
    from unembed.identification.known import loading

    for name in named:
        if sends_texts(name):
            raise ConfigError(
                f"'{name}' would send stored texts to another machine.", "Name an encoder that runs on this one."
            )
    return {name: loading(name, device) for name in map(known_name, named)} | installed_encoders(dim, device)


def _to_json(name: str, found: "Identification") -> dict[str, Any]:
    return {
        "source": name,
        "verdict": found.verdict,
        "encoder": found.name,
        "prompt": found.prompt,
        "because": found.because,
        "next": found.advice,
        "dim": found.dim,
        "vectors": found.vectors,
        "texts": found.texts,
        "candidates": [_candidate_to_json(candidate) for candidate in found.candidates],
    }


def _candidate_to_json(candidate: "Candidate") -> dict[str, Any]:
    agreement, fit = candidate.agreement, candidate.fit
    return {
        "encoder": candidate.name,
        "standing": candidate.standing,
        "prompt": candidate.prompt,
        "median_cosine": None if agreement is None else round(agreement.median, 4),
        "deviation": None if fit is None else round(fit.distance**0.5, 3),
        "evidence": candidate.evidence,
    }


def _show(name: str, found: "Identification") -> None:
    from rich.console import Console
    from rich.table import Table

    from unembed.text import printable, printable_lines

    # Plain: brackets and colons in a name are not markup.
    console = Console(markup=False, emoji=False, highlight=False)
    compared = f", {found.texts:,} stored texts compared" if found.texts else ""
    console.print(printable(f"{name}: {found.vectors:,} vectors of {found.dim:,} numbers{compared}"))
    shown = [candidate for candidate in found.candidates if candidate.standing != "dimension only"]
    if shown:
        table = Table("encoder", "verdict", "evidence")
        for candidate in shown:
            table.add_row(printable(candidate.name), candidate.standing, printable(" ".join(candidate.evidence)))
        console.print(table)
    others = [candidate.name for candidate in found.candidates if candidate.standing == "dimension only"]
    if others:
        typer.echo(printable(f"Known by their dimension only, so neither likely nor excluded: {', '.join(others)}."))
    named = f": {found.name}" if found.name else ""
    typer.echo(printable_lines(f"{found.verdict.capitalize()}{named}. {found.because}"))
    if found.advice:
        typer.echo(printable_lines(found.advice))
