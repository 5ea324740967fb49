"""The ``prepare`` command."""

import json
import subprocess
import sys

import pytest
import typer
from typer.testing import CliRunner

from unembed.cli.prepare import prepare
from unembed.errors import ConfigError, CorpusError

app = typer.Typer()
app.command()(prepare)


@pytest.fixture
def source(tmp_path):
    path = tmp_path / "input.csv"
    rows = [f'{number},"Sentence {number}, and it is long enough."' for number in range(50)]
    path.write_text("\n".join(["id,body", *rows, "50,short", "51,"]), encoding="utf-8")
    return path


def run(*arguments):
    return CliRunner().invoke(app, [str(argument) for argument in arguments], catch_exceptions=True)


def test_a_table_tells_what_was_kept_and_what_was_dropped_and_why(tmp_path, source):
    result = run(source, "--field", "body", "-o", tmp_path / "corpus")
    assert result.exit_code == 0, result.output
    lines = result.stdout.splitlines()
    train = (tmp_path / "corpus/train.txt").read_text().count("\n")
    for label, count in [
        ("texts read", 52),
        ("texts to train", train),
        ("texts to validate", 50 - train),
        ("too short", 1),
        ("empty", 1),
    ]:
        assert any(label in line and str(count) in line for line in lines), label
    assert "duplicate" not in result.stdout
    assert 0 < train < 50


def test_json_on_stdout_is_the_report_and_nothing_else(tmp_path, source):
    options = ["--min-characters", 5, "--max-characters", 100, "--fragment-share", 0.5, "--validation-share", 0.2]
    options += ["--question-share", 0.25, "--limit", 40, "--seed", 7]
    output = tmp_path / "corpus"
    result = run(f"{source}@2", "--field=body", "--mode=sentence", "--output", output, "--json", *options)
    assert result.exit_code == 0, result.output
    report = json.loads(result.stdout)
    assert report == json.loads((tmp_path / "corpus/corpus.json").read_text())
    assert report["inputs"] == [{"location": str(source), "weight": 2.0}]
    assert report["options"] == {
        "mode": "sentence",
        "min_characters": 5,
        "max_characters": 100,
        "fragment_share": 0.5,
        "question_share": 0.25,
        "validation_share": 0.2,
        "limit": 40,
        "seed": 7,
        "field": "body",
    }
    assert report["train"] + report["validation"] == 40


def test_a_mistake_reaches_the_app_as_a_user_error(tmp_path, source):
    missing = run("missing.txt", "-o", tmp_path / "corpus")
    assert isinstance(missing.exception, CorpusError)
    unknown = run(source, "-o", tmp_path / "corpus", "--mode", "word")
    assert isinstance(unknown.exception, ConfigError)


def test_inputs_and_output_are_required():
    assert run("-o", "corpus").exit_code == 2
    assert run("input.txt").exit_code == 2


def test_the_help_explains_every_option():
    help_text = run("--help").stdout
    for name in ("--output", "--mode", "--field", "--min-characters", "--limit", "--seed", "--json", "Example"):
        assert name in help_text


def test_importing_the_command_imports_nothing_heavy():
    program = (
        "import sys, unembed.cli.prepare, unembed.corpus;"
        "sys.stdout.write(' '.join({'torch', 'numpy', 'pyarrow', 'datasets'} & set(sys.modules)))"
    )
    result = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert result.stdout == ""
