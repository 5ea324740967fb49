"""``unembed inverters``: which inverters are installed, whose vectors they read, and what to type for others."""

from pathlib import Path
from typing import Annotated, Any

import typer


def inverters(
    as_json: Annotated[bool, typer.Option("--json", help="Print the list as JSON.")] = False,
) -> None:
    """List the inverters that are known by name; folders and hub ids work too.

    Example: unembed inverters --json
    """
    from unembed.auditing.language import name_languages
    from unembed.cli.output import show_json
    from unembed.hub import AVAILABLE, installed_inverters
    from unembed.text import printable

    listed = {name: _describe(name) for name in installed_inverters()}
    missing = {name: command for name, command in AVAILABLE.items() if name not in listed}
    if as_json:
        show_json(listed | {name: {"installed": False, "install": command} for name, command in missing.items()})
        return
    for name, facts in listed.items():
        typer.echo(f"{printable(name)}  ({printable(facts['package'])})")
        if "problem" in facts:
            typer.echo(f"    cannot be used: {printable(facts['problem'])}")
            continue
        typer.echo(
            f"    reads {printable(facts['encoder'])}, {facts['dim']} numbers; writes up to {facts['canvas_length']} "
            f"tokens; {facts['bytes'] / 1e6:.0f} MB"
        )
        typer.echo(f"    languages: {printable(', '.join(name_languages(facts['languages'])) or 'unknown')}")
    for name, command in missing.items():
        typer.echo(f"{name}  (not installed)")
        typer.echo(f"    in a checkout of unembed: {command}")
    typer.echo("Also folders that unembed train and unembed adapt wrote, and hub ids (organisation/model).")


def _describe(name: str) -> dict[str, Any]:
    """Return the facts about an installed inverter; if it is damaged, what is wrong."""
    from unembed.checkpoint import DEFAULT, fetch_checkpoint, read_info
    from unembed.errors import UnembedError
    from unembed.plugins import INVERTERS, plugin_package

    facts: dict[str, Any] = {"installed": True, "package": "unembed"}
    try:
        if name != DEFAULT:
            facts["package"] = plugin_package(INVERTERS, name)
        folder = fetch_checkpoint(name)
        info = read_info(folder)
    except UnembedError as error:
        return facts | {"problem": error.problem}
    return facts | {
        "folder": str(folder),
        "encoder": info.encoder.name,
        "dim": info.encoder.dim,
        "languages": list(info.languages),
        "canvas_length": info.model.canvas_length,
        "bytes": _size(folder),
    }


def _size(folder: Path) -> int:
    return sum(path.stat().st_size for path in folder.iterdir() if path.is_file())
