"""What ``unembed words`` and ``unembed audit`` take beside an address: columns, files of results, detectors."""

import json
import signal
import sys

import pytest

import stores
from unembed.auditing import WordReader

TEXTS = [f"the {who} {what}." for who in ("king", "cat", "dog", "boy") for what in ("sleeps", "walks", "runs")]


@pytest.fixture
def vectors(fake_encoder):
    return fake_encoder.encode(TEXTS)


def test_the_stored_text_follows_the_words(run_cli, vectors, readout_checkpoint, tmp_path):
    uri = stores.qdrant(tmp_path / "store", vectors, TEXTS)
    options = ("--model", readout_checkpoint, "--limit", 2)
    lines = run_cli("words", uri, *options).out.splitlines()
    assert [line.split("\t")[2] for line in lines] == TEXTS[:2]
    records = [json.loads(line) for line in run_cli("words", uri, *options, "--json").out.splitlines()]
    assert [(record["row"], record["stored_text"]) for record in records] == list(enumerate(TEXTS[:2]))


def test_a_stopped_run_is_continued(run_cli, vectors, readout_checkpoint, tmp_path):
    uri = stores.npy(tmp_path / "store", vectors, TEXTS)
    run_cli("words", uri, "-m", readout_checkpoint, "--limit", 7, "--output", tmp_path / "part.jsonl")
    run_cli("words", uri, "-m", readout_checkpoint, "--output", tmp_path / "part.jsonl", "--resume")
    run_cli("words", uri, "-m", readout_checkpoint, "--output", tmp_path / "whole.jsonl")
    assert len((tmp_path / "whole.jsonl").read_text().splitlines()) == 12
    assert (tmp_path / "part.jsonl").read_text() == (tmp_path / "whole.jsonl").read_text()
    ended = run_cli("words", uri, "-m", readout_checkpoint, "--count", "--output", tmp_path / "x.jsonl")
    assert "--output is for a list" in ended.err


def test_a_continued_search_counts_only_what_it_has_read(run_cli, vectors, readout_checkpoint, tmp_path):
    uri = stores.npy(tmp_path / "store", vectors, TEXTS)
    search = ("words", uri, "-m", readout_checkpoint, "--find", "king", "--output", tmp_path / "x.jsonl")
    run_cli(*search, "--limit", 6)
    done = json.loads((tmp_path / "x.jsonl").read_text().splitlines()[-1])["row"] + 1
    assert f" of {len(TEXTS) - done} vectors" in run_cli(*search, "--resume").err


def test_ctrl_c_ends_with_what_was_counted(run_cli, vectors, readout_checkpoint, tmp_path, monkeypatch):
    uri = stores.npy(tmp_path / "store", vectors, TEXTS)
    read = WordReader.read

    def press(self, rows):
        signal.raise_signal(signal.SIGINT)
        return read(self, rows)

    monkeypatch.setattr(WordReader, "read", press)
    monkeypatch.setattr(sys.modules["unembed.cli.words"], "_BATCH", 10)
    ended = run_cli("words", uri, "-m", readout_checkpoint, "--count", "--json")
    assert ended.code == 0, ended.err
    assert "Stopped early, after 10 vectors." in ended.err
    assert {json.loads(line)["of"] for line in ended.out.splitlines()} == {10}


def test_an_audit_counts_the_kinds_that_the_user_defines(run_cli, vectors, tiny_checkpoint, tmp_path):
    (tmp_path / "rulers.txt").write_text("king\nqueen\n")
    uri = stores.jsonl(tmp_path / "store", vectors, TEXTS)
    options = ("--model", tiny_checkpoint, "--output", tmp_path / "out", "--bootstrap", 20)
    ended = run_cli("audit", uri, *options, "--detect", "naps=sleeps?", "--terms", tmp_path / "rulers.txt")
    assert ended.code in (0, 3, 4), ended.err
    (blind,) = json.loads((tmp_path / "out" / "report.json").read_text())["attacks"]
    holding = {leak["kind"]: leak["holding"] for leak in blind["leaks"]}
    assert (holding["naps"], holding["rulers"]) == (4, 3)
    assert run_cli("audit", uri, *options, "--detect", "x=[").code == 2
