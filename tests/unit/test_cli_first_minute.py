"""The first minute in a terminal: no argument, the tour, the doctor."""

import json
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

import unembed.cli.doctor  # noqa: F401  (the package's attribute of this name is the command)

doctor = sys.modules["unembed.cli.doctor"]


def test_without_an_argument_three_commands_are_suggested(run_cli):
    ended = run_cli()
    assert ended.code == 0
    assert re.findall(r"^  unembed (\w+)", ended.out, re.MULTILINE) == ["demo", "serve", "audit"]
    assert "unembed --help" in ended.out


def test_the_tour_names_words_and_reads_the_sentence_back_three_times(run_cli):
    ended = run_cli("demo", "My doctor says that I have diabetes.")
    assert ended.code == 0, ended.err
    parts = ("384 numbers", "Words that", "in a moment", "seconds of search", "checks every")
    places = [ended.out.index(part) for part in parts]
    assert places == sorted(places)
    words = ended.out[places[1] : places[2]]
    assert "✓diabetes" in words
    blind, searched, guided = re.findall(r"^recovered +(.*)$", ended.out, re.MULTILINE)
    assert "sure" in blind
    assert "by the surrogate" in searched
    assert "cosine" in guided
    assert "doctor" in guided


def test_the_tour_has_a_sentence_of_its_own_and_can_leave_out_the_encoder(run_cli):
    from unembed.cli.demo import _opener

    ended = run_cli("demo", "--blind")
    assert _opener() in ended.out
    assert len(re.findall(r"^recovered", ended.out, re.MULTILINE)) == 2


FIRST_WORDS = """
import os, sys, time
begun = time.process_time()
import typer
import unembed.cli

def end(text="", **more):
    os.write(1, f"{time.process_time() - begun} {'torch' in sys.modules}".encode())
    os._exit(0)

typer.echo = end
unembed.cli.main()
"""


@pytest.mark.parametrize("arguments", [["demo"], ["serve", "--port", "0"], ["doctor"]])
def test_something_is_said_before_anything_is_loaded(arguments):
    command = [sys.executable, "-c", FIRST_WORDS, *arguments]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=120)
    seconds, torch = done.stdout.split()
    assert torch == "False"
    assert float(seconds) < 1.0, "of the processor's time: a busy machine does not matter"


def test_the_doctor_finds_what_is_there(run_cli):
    ended = run_cli("doctor", "--json")
    findings = {finding["name"]: finding for finding in json.loads(ended.out)}
    assert ended.code == 0
    assert findings["inverter"]["state"] == "ok"
    assert findings["encoder weights"]["state"] == "ok"
    assert "read a vector" in findings["trial run"]["fact"]
    assert "core" in findings["threads"]["fact"]


def test_the_doctor_says_what_to_install(run_cli, monkeypatch):
    monkeypatch.setattr(doctor, "find_spec", lambda name: None if name == "chromadb" else object())
    out = run_cli("doctor", "--quick").out
    assert "--  extra chroma" in out
    assert "pip install 'unembed[chroma]'" in out
    assert "Everything that is needed is there." in out
    monkeypatch.setattr(doctor, "find_spec", lambda name: None if name == "tokenizers" else object())
    ended = run_cli("doctor", "--quick")
    assert ended.code == 1
    assert "not installed: tokenizers" in ended.out


def test_the_doctor_notices_more_threads_than_cores(run_cli, monkeypatch):
    monkeypatch.setenv("OMP_NUM_THREADS", "4096")
    out = run_cli("doctor", "--quick").out
    assert re.search(r"export OMP_NUM_THREADS=\d", out)


def test_the_doctor_knows_every_extra():
    project = tomllib.loads((Path(__file__).parents[2] / "pyproject.toml").read_text(encoding="utf-8"))
    assert set(doctor.EXTRAS) == set(project["project"]["optional-dependencies"]) - {"dev"}
