"""The first second is not blank, and mistakes are found before anything heavy is imported."""

import subprocess
import sys

import pytest

from unembed.cli.loading import loading


def test_a_terminal_shows_what_is_loading_until_it_is_loaded(capsys, monkeypatch):
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    with loading("the inverter"):
        assert capsys.readouterr().err == "Loading the inverter ..."
    assert capsys.readouterr().err == "\r\x1b[K"


def test_the_line_is_cleared_before_an_error_is_printed(capsys, monkeypatch):
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    with pytest.raises(ValueError, match="broken"), loading("the inverter"):
        raise ValueError("broken")
    assert capsys.readouterr().err.endswith("\r\x1b[K")


def test_the_name_of_an_encoder_out_of_a_checkpoint_cannot_control_the_terminal(capsys, monkeypatch):
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    with loading("the encoder \x1b[2J"):
        assert capsys.readouterr().err == "Loading the encoder \\x1b[2J ..."


def test_a_pipe_stays_as_it_is(capsys):
    with loading("the inverter"):
        pass
    assert capsys.readouterr().err == ""


def run_unembed(*arguments, before=""):
    """Run a command in a process of its own; its last line on stderr says whether torch was imported."""
    code = f"""
import sys
from unembed.cli import main
sys.argv = {["unembed", *map(str, arguments)]!r}
{before}
try: main()
finally: print("torch" in sys.modules, file=sys.stderr)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    return done.returncode, done.stderr.splitlines()


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        (["invert", "nowhere.npy"], "nowhere.npy"),
        (["invert", "a text", "--model", "./nowhere"], "There is no folder ./nowhere."),
        (["invert", "a text", "--strategy", "wild"], "strategy"),
        (["train", "nowhere.yaml"], "nowhere.yaml"),
    ],
)
def test_a_mistake_is_found_before_torch_is_imported(arguments, problem):
    code, said = run_unembed(*arguments)
    assert code == 2
    assert problem in "".join(said)
    assert said[-1] == "False"


def test_what_is_loading_is_said_before_torch_is_imported():
    """The loading of the inverter is made to fail, so that the command ends there."""
    _, said = run_unembed(
        "invert",
        "a text",
        before="""
sys.stderr.isatty = lambda: True
import unembed.hub
def fail(name): sys.exit(f" asked for {name}, with torch: {'torch' in sys.modules}")
unembed.hub.fetch_checkpoint = fail
""",
    )
    assert any("Loading the inverter default ..." in line for line in said)
    assert any("asked for default, with torch: False" in line for line in said)
