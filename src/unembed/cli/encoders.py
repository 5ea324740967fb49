"""``unembed encoders``: which encoders are known, and what to type to have them."""

from typing import Annotated

import typer


def encoders(
    as_json: Annotated[bool, typer.Option("--json", help="Print the list as JSON.")] = False,
) -> None:
    """List the encoders that are known by name; folders, hub ids and addresses work too.

    Example: unembed encoders --json
    """
    from unembed.cli.output import show_json
    from unembed.encoders import CATALOGUE
    from unembed.plugins import ENCODERS, plugin_names

    plugins = plugin_names(ENCODERS)

    if as_json:
        keys = ("dim", "pooling", "tokenizer", "licence", "installed", "install")
        listed = {name: {key: getattr(known, key) for key in keys} for name, known in CATALOGUE.items()}
        show_json(listed | {name: {"installed": True, "plugin": True} for name in plugins})
        return
    for name, known in CATALOGUE.items():
        typer.echo(f"{name}  ({'installed' if known.installed else 'not installed'})")
        typer.echo(f"    {known.dim} numbers; pooling: {known.pooling}; {known.tokenizer}; licence: {known.licence}")
        if not known.installed:
            typer.echo(f"    {known.install}")
    for name in plugins:
        typer.echo(f"{name}  (plugin)")
    typer.echo(
        "Also any sentence-transformers model, by hub id (organisation/model) or folder, and any OpenAI-compatible\n"
        "endpoint (https://host/v1#model). docs/encoders.md says how to add one."
    )
