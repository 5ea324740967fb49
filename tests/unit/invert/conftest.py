"""``unembed invert``, with an inverter that has learnt nothing."""

import json

import numpy as np
import pytest


@pytest.fixture(autouse=True)
def asked(monkeypatch, fake_encoder):
    questions = []

    def load(name, **options):
        questions.append({"name": name} | options)
        return fake_encoder

    monkeypatch.setattr("unembed.encoders.loading.load_encoder", load)
    return questions


@pytest.fixture
def invert(run_cli, tiny_checkpoint):
    """Runs ``unembed invert`` with the tiny inverter; it must end well."""

    def invert(*arguments):
        ended = run_cli("invert", *arguments, "-m", tiny_checkpoint)
        assert ended.code == 0, ended.err
        return ended

    return invert


@pytest.fixture
def refused(run_cli, tiny_checkpoint):
    """Runs ``unembed invert`` with the tiny inverter; it must end as a mistake does."""

    def refused(*arguments):
        ended = run_cli("invert", *arguments, "-m", tiny_checkpoint)
        assert ended.code == 2, ended
        assert "Traceback" not in ended.err
        return " ".join(ended.err.split())

    return refused


@pytest.fixture
def records(invert):
    """The JSON objects that ``unembed invert --json`` prints."""
    return lambda *arguments: [json.loads(line) for line in invert(*arguments, "--json").out.splitlines()]


@pytest.fixture
def vectors():
    found = np.random.default_rng(0).normal(size=(5, 16))
    return found / np.linalg.norm(found, axis=1, keepdims=True)


@pytest.fixture
def vector_file(vectors, tmp_path):
    np.save(tmp_path / "vectors.npy", vectors)
    return tmp_path / "vectors.npy"
