"""``unembed identify``: a file or a database in, a table and a verdict out."""

import json
import sys

import numpy as np
import pytest

import stores
from unembed.identification import KnownVectors, known
from unembed.store import Fingerprint

TEXTS = [f"the {who} {what}." for who in ("king", "cat", "dog", "boy") for what in ("sleeps", "walks", "runs")]


@pytest.fixture
def vectors(fake_encoder):
    return fake_encoder.encode(TEXTS)


@pytest.fixture
def installed(fake_encoder, monkeypatch):
    """The fake encoder is the only one on this machine, and has no fingerprint."""
    monkeypatch.setattr("unembed.identification.installed_encoders", lambda dim, device: {"fake": lambda: fake_encoder})
    return fake_encoder


def test_stored_texts_identify_the_encoder(run_cli, vectors, installed, tmp_path):
    ended = run_cli("identify", stores.qdrant(tmp_path / "store", vectors, TEXTS))
    assert ended.code == 0, ended.err
    assert "12 vectors of 16 numbers, 12 stored texts compared" in ended.out
    assert "Identified: fake." in ended.out
    assert "Comparing stored texts: fake" in ended.err


def test_the_result_as_json(run_cli, vectors, installed, tmp_path):
    ended = run_cli("identify", stores.qdrant(tmp_path / "store", vectors, TEXTS), "--limit", 5, "--json")
    result = json.loads(ended.out)
    assert (result["verdict"], result["encoder"], result["vectors"], result["texts"]) == ("identified", "fake", 5, 5)
    (candidate,) = result["candidates"]
    assert candidate["standing"] == "texts agree"
    assert candidate["median_cosine"] == pytest.approx(1.0)
    assert candidate["evidence"]


def test_no_text_is_embedded_when_that_is_not_wanted(run_cli, vectors, installed, tmp_path):
    installed.seen.clear()
    ended = run_cli("identify", stores.qdrant(tmp_path / "store", vectors, TEXTS), "--no-ask")
    assert (ended.code, installed.seen) == (0, [])
    assert "Unknown." in ended.out


def test_vectors_in_a_file_are_recognised_by_their_fingerprint(run_cli, vectors, tmp_path, monkeypatch):
    rng = np.random.default_rng(0)
    drawn = np.linspace(-1, 1, 16) + 0.4 * rng.normal(size=(420, 16))
    entry = KnownVectors("toy", "", Fingerprint.of([drawn[:400]]))
    monkeypatch.setattr(sys.modules["unembed.identification.identify"], "known_vectors", lambda: (entry,))
    np.save(tmp_path / "own.npy", 50 * drawn[400:] / np.linalg.norm(drawn[400:], axis=1, keepdims=True))
    np.save(tmp_path / "other.npy", -drawn[400:])
    ended = run_cli("identify", tmp_path / "own.npy")
    assert ended.code == 0, ended.err
    assert "Likely: toy." in ended.out
    ended = run_cli("identify", tmp_path / "other.npy")
    assert ended.code == 0, ended.err
    assert "Unknown." in ended.out


def test_encoders_of_the_same_dimension_are_listed_apart(run_cli, tmp_path):
    np.save(tmp_path / "x.npy", np.random.default_rng(0).normal(size=(5, 3072)))
    ended = run_cli("identify", tmp_path / "x.npy")
    assert ended.code == 0, ended.err
    assert "Known by their dimension only, so neither likely nor excluded: text-embedding-3-large" in ended.out


def test_texts_are_sent_to_no_other_machine(run_cli, vectors, tmp_path):
    np.save(tmp_path / "x.npy", vectors)
    ended = run_cli("identify", tmp_path / "x.npy", "--encoder", "https://host/v1#model")
    assert ended.code == 2
    assert "would send stored texts to another machine" in ended.err


@pytest.mark.parametrize(
    ("vectors", "problem"), [(np.zeros((3, 16)), "holds no vectors"), (np.full((2, 16), np.nan), "holds no vectors")]
)
def test_a_file_without_usable_vectors_is_an_error(run_cli, tmp_path, vectors, problem):
    np.save(tmp_path / "x.npy", vectors)
    ended = run_cli("identify", tmp_path / "x.npy")
    assert ended.code == 2
    assert problem in ended.err


def test_a_missing_file_is_an_error(run_cli, tmp_path):
    ended = run_cli("identify", tmp_path / "none.npy")
    assert ended.code == 2
    assert "There is no file" in ended.err


def test_the_prompts_of_an_encoder_are_not_added_twice():
    assert known.loading("multilingual-e5-small").keywords["prompt"] == ""
    assert known.loading("all-MiniLM-L6-v2").keywords["prompt"] is None
