"""``unembed invert --strategy zero``, from the command to the text."""

import json

import numpy as np
import pytest

TEXT = "the old man drinks tea"


@pytest.fixture
def records(run_cli, tiny_checkpoint, monkeypatch, language, fake_encoder, turned):
    monkeypatch.setattr("unembed.inverter.zero.load_language_model", lambda name, device: language)
    encoders = {"fake": fake_encoder, "turned": turned}
    monkeypatch.setattr("unembed.encoders.loading.load_encoder", lambda name, **options: encoders[name])

    def records(*arguments):
        ended = run_cli("invert", *arguments, "--strategy", "zero", "--json", "-m", tiny_checkpoint)
        assert ended.code == 0, ended.err
        return [json.loads(line) for line in ended.out.splitlines()]

    return records


def test_a_text_is_embedded_and_read_back(records):
    (record,) = records(TEXT, "--encoder", "turned", "--calls", 300)
    assert record["embedded"] == TEXT
    assert record["strategy"] == "zero"
    assert 0 < record["encoder_calls"] <= 300
    assert record["comparison"]["cosine"] == pytest.approx(record["score"], abs=1e-4)


def test_vectors_of_a_file_are_read(records, turned, tmp_path):
    np.save(tmp_path / "vectors.npy", turned.encode([TEXT, "a bird sings in the tree"]))
    first, second = records(tmp_path / "vectors.npy", "--encoder", "turned", "--calls", 200, "--trace")
    assert (first["row"], second["row"]) == (0, 1)
    scores = [step["texts_embedded"] for step in first["trace"]]
    assert scores == sorted(scores)
    assert first["trace"][-1]["tokens"] == first["tokens"]


def test_the_inverter_names_its_own_encoder(records, fake_encoder):
    (record,) = records(TEXT, "--calls", 150)
    assert record["encoder_calls"] > 0
