"""The library names parameters; the command line names what to type."""

import ast
import re
from pathlib import Path
from typing import Annotated

import pytest
import typer
from typer.main import get_command

from unembed.cli.flags import Command, name_flags
from unembed.errors import ConfigError

SOURCE = Path(__file__).parents[2] / "src" / "unembed"


@pytest.fixture(scope="module")
def command():
    app = typer.Typer()

    @app.command(cls=Command)
    def measure(
        texts: str,
        truncate_dim: int = 1,
        output: Annotated[str, typer.Option("--output", "-o")] = "",
        as_json: Annotated[bool, typer.Option("--json")] = False,
        animation: Annotated[bool, typer.Option("--animation/--no-animation")] = True,
    ) -> None:
        raise ConfigError(f"`truncate_dim` is {truncate_dim}.", "Lower `truncate_dim`, or see `docs`.")

    return get_command(app)


@pytest.mark.parametrize(
    ("said", "typed"),
    [
        ("Lower `truncate_dim`.", "Lower --truncate-dim."),
        ("Try `truncate_dim=64`.", "Try --truncate-dim 64."),
        ("Try `output=\"x y\"` or `output='z'`.", "Try --output x y or --output z."),
        ("Leave out `as_json`.", "Leave out --json."),
        ("Add `as_json=True`.", "Add --json."),
        ("Say `animation=False`.", "Say --no-animation."),
        ("Say `as_json=False`.", "Say no --json."),
        ("Give other `texts`.", "Give other TEXTS."),
        ("Raise `training.steps` of `recipe`.", "Raise `training.steps` of `recipe`."),
        ("Nothing to say.", "Nothing to say."),
    ],
)
def test_a_parameter_becomes_what_is_typed_for_it(command, said, typed):
    assert name_flags(said, command.params) == typed


def test_an_error_of_a_command_names_its_flags(command):
    with pytest.raises(ConfigError) as caught:
        command.main(["x", "--truncate-dim", "3"], standalone_mode=False)
    assert (caught.value.problem, caught.value.remedy) == (
        "--truncate-dim is 3.",
        "Lower --truncate-dim, or see `docs`.",
    )


def strings_of(path):
    """The strings of a module without its docstrings; an f-string counts as one."""
    tree = ast.parse(path.read_text())
    skipped = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
    skipped |= {id(part) for node in ast.walk(tree) if isinstance(node, ast.JoinedStr) for part in node.values}
    for node in ast.walk(tree):
        if id(node) in skipped:
            continue
        if isinstance(node, ast.JoinedStr):
            yield "".join(str(part.value) if isinstance(part, ast.Constant) else "{}" for part in node.values)
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            yield node.value


LIBRARY = [path for path in sorted(SOURCE.rglob("*.py")) if "cli" not in path.relative_to(SOURCE).parts]


@pytest.mark.parametrize("path", LIBRARY, ids=lambda path: str(path.relative_to(SOURCE)))
def test_the_library_names_no_flag_outside_of_a_command_to_type(path):
    naming = [text for text in strings_of(path) if re.search(r"(?<![\w-])--[a-z]", text)]
    assert not [text for text in naming if not re.search(r"\b(unembed|pip install) .*--[a-z]", text)]
