"""The command line answers at once, and explains itself."""

import subprocess
import sys

import pytest
from typer.main import get_command

import unembed
from unembed.cli import app

COMMANDS = list(get_command(app).commands)


def run(code):
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)


@pytest.mark.parametrize(
    "arguments", [["--version"], ["--help"], ["embed", "--help"], ["train", "--help"], ["evaluate", "--help"]]
)
def test_questions_about_itself_need_nothing_heavy(arguments):
    done = run(
        "import sys\n"
        "from unembed.cli import main\n"
        f"sys.argv = {['unembed', *arguments]!r}\n"
        "try: main()\n"
        "finally:\n"
        "    heavy = {'torch', 'transformers', 'numpy', 'sentence_transformers', 'accelerate', 'datasets'}\n"
        "    print('imported:', *heavy & set(sys.modules), file=sys.stderr)"
    )
    assert done.returncode == 0, done.stderr
    assert done.stderr.splitlines()[-1] == "imported:"
    assert done.stdout


def test_the_version_is_told_quickly():
    """In time of the processor, beyond that of an interpreter which does nothing: a busy machine does not matter."""
    resource = pytest.importorskip("resource")

    def seconds(code):
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        assert run(code).returncode == 0
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime

    command = "import sys; sys.argv = ['unembed', '--version']; from unembed.cli import main; main()"
    pairs = [(seconds(command), seconds("pass")) for _ in range(4)]
    assert min(ours - bare for ours, bare in pairs) < 0.3


def test_the_version_is_the_packages(run_cli):
    ended = run_cli("--version")
    assert (ended.code, ended.out) == (0, f"unembed {unembed.__version__}\n")


def test_the_help_names_every_command_in_the_order_of_the_pipeline(run_cli):
    out = run_cli("--help").out
    places = [out.index(f" {command} ") for command in ("prepare", "embed", "train", "invert", "evaluate")]
    assert all(f" {command} " in out for command in COMMANDS)
    assert places == sorted(places)


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_shows_an_example(run_cli, command):
    ended = run_cli(command, "--help")
    assert ended.code == 0
    assert f"Example: unembed {command}" in ended.out
    assert "--json" in ended.out or command in ("serve", "demo")


def test_no_command_shows_the_help(run_cli):
    ended = run_cli()
    assert "embed" in ended.out + ended.err
    assert "Traceback" not in ended.err


def test_an_unknown_command_or_option_ends_with_2(run_cli):
    assert run_cli("embedd").code == 2
    ended = run_cli("embed", "x", "-o", "y", "--no-such-option")
    assert ended.code == 2
    assert "--no-such-option" in ended.err
