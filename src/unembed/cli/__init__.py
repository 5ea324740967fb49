"""The command line. Knows how to parse, show and exit; the work is done elsewhere.

Nothing heavy is imported here, so that ``unembed --version`` is fast. Each command imports what it needs when it runs.
"""

import errno
import sys
from typing import Annotated, NoReturn

import typer

from unembed._version import __version__
from unembed.cli.adapt import adapt
from unembed.cli.audit import audit
from unembed.cli.defend import defend
from unembed.cli.demo import demo
from unembed.cli.doctor import doctor
from unembed.cli.embed import embed
from unembed.cli.encoders import encoders
from unembed.cli.evaluate import evaluate
from unembed.cli.export import export
from unembed.cli.fill import fill
from unembed.cli.flags import Command
from unembed.cli.identify import identify
from unembed.cli.invert import invert
from unembed.cli.inverters import inverters
from unembed.cli.prepare import prepare
from unembed.cli.serve import serve
from unembed.cli.train import train
from unembed.cli.words import words
from unembed.errors import UnembedError, from_os_error
from unembed.text import printable_lines

_INTERRUPTED = 130  # what typer makes of Ctrl-C

app = typer.Typer(
    name="unembed",
    help="Read the text back out of an embedding vector.",
    pretty_exceptions_enable=False,
    add_completion=False,
)


def _show_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"unembed {__version__}")
        raise typer.Exit


_FIRST = """Reads the text back out of an embedding vector. Three things to try:

  unembed demo                    see what an embedding gives away, in a minute
  unembed serve --open            the same as a web page
  unembed audit chroma:./db       what your vector database gives away

unembed doctor checks the installation; unembed --help lists all commands."""


@app.callback(invoke_without_command=True)
def _root(
    context: typer.Context,
    version: Annotated[
        bool, typer.Option("--version", callback=_show_version, is_eager=True, help="Show the version and exit.")
    ] = False,
) -> None:
    if context.invoked_subcommand is None:
        typer.echo(_FIRST)


COMMANDS = (
    *(demo, prepare, embed, train, adapt, invert, fill, evaluate, identify, words, audit, serve, export),
    *(encoders, inverters, doctor),
)
for command in COMMANDS:
    app.command(cls=Command)(command)
    if command is audit:
        app.add_typer(defend, name="defend")


def main() -> None:
    """Run the command line: exit 0 on success, 2 on a mistake that the user can fix, 1 otherwise."""
    try:
        app()
    except UnembedError as error:
        _end_with(error)
    except OSError as error:
        # Whatever was being written, a full disk is not our bug.
        if error.errno not in (errno.ENOSPC, errno.EDQUOT):
            raise
        _end_with(from_os_error(error, f"writing {error.filename or 'the output'}"))
    except SystemExit as ending:
        if ending.code != _INTERRUPTED:
            raise
        typer.echo("Interrupted.", err=True)
        sys.exit(1)


def _end_with(error: UnembedError) -> NoReturn:
    # An error may quote names out of a database or a checkpoint, which anybody may have written.
    typer.secho(f"Error: {printable_lines(error.problem)}", fg=typer.colors.RED, err=True)
    if error.remedy:
        typer.echo(printable_lines(error.remedy), err=True)
    sys.exit(2)
