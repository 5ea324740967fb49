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

    monkeypatch.setattr("unembed.encoders.load_encoder", load)
    return questions


def test_a_file_of_vectors_gives_a_text_for_each(run_cli, tiny_checkpoint, tmp_path):
    np.save(tmp_path / "vectors.npy", np.random.default_rng(0).normal(size=(3, 16)))
    ended = run_cli("invert", tmp_path / "vectors.npy", "-m", tiny_checkpoint)
    assert ended.code == 0, ended.err
    assert ended.out.count("recovered") == 3
    assert "original" not in ended.out


def test_one_vector_is_a_file_too(run_cli, tiny_checkpoint, tmp_path):
    np.save(tmp_path / "vector.npy", np.ones(16, np.float16))
    ended = run_cli("invert", tmp_path / "vector.npy", "-m", tiny_checkpoint, "--json")
    assert ended.code == 0, ended.err
    (inversion,) = json.loads(ended.out)
    assert inversion["original"] is None
    assert len(inversion["tokens"]) == len(inversion["confidences"]) > 0


def test_no_vectors_give_no_texts(run_cli, tiny_checkpoint, tmp_path):
    np.save(tmp_path / "none.npy", np.empty((0, 16), np.float32))
    ended = run_cli("invert", tmp_path / "none.npy", "-m", tiny_checkpoint, "--json")
    assert ended.code == 0, ended.err
    assert json.loads(ended.out) == []


def test_texts_go_round_through_the_encoder_that_the_inverter_names(run_cli, tiny_checkpoint, asked):
    ended = run_cli("invert", "the cat sleeps", "a dog", "-m", tiny_checkpoint, "--json", "--steps", 2)
    assert ended.code == 0, ended.err
    assert asked == [{"name": "fake", "prompt": None, "revision": None, "device": "auto"}]
    inversions = json.loads(ended.out)
    assert [inversion["original"] for inversion in inversions] == ["the cat sleeps", "a dog"]
    assert all(inversion["passes"] <= 2 for inversion in inversions)


def test_an_encoder_that_lies_elsewhere_can_be_pointed_at(run_cli, tiny_checkpoint, asked, tmp_path):
    ended = run_cli("invert", "the cat", "-m", tiny_checkpoint, "--encoder", tmp_path / "fake")
    assert ended.code == 0, ended.err
    assert asked[0]["name"] == str(tmp_path / "fake")
    assert "original   the cat" in ended.out


def test_another_encoder_is_refused(run_cli, tiny_checkpoint, fake_encoder):
    fake_encoder.description = fake_encoder.description.model_copy(update={"name": "other"})
    ended = run_cli("invert", "the cat", "-m", tiny_checkpoint)
    assert ended.code == 2
    assert "'fake'" in ended.err
    assert "'other'" in ended.err
