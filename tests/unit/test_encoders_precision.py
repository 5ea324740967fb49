"""bfloat16: chosen where it pays and keeps the vectors, recorded, and never seen by whoever uses the vectors."""

import json

import numpy as np
import pytest
import torch

from unembed.encoders import EncoderDescription, load_encoder, sentence_transformer
from unembed.encoders.precision import PROBES, has_native_bfloat16, least_cosine
from unembed.errors import ConfigError
from unembed.store import Manifest, embed_texts

TEXTS = ["The cat sleeps.", "Prices rose by 3.2 % in March, after 2.9 % in February.", "königlich"]


@pytest.fixture
def native(monkeypatch):
    """Says whether this machine has bfloat16; it does not matter whether that is true."""
    return lambda answer: monkeypatch.setattr(sentence_transformer, "has_native_bfloat16", lambda device: answer)


def test_vectors_stay_float32_and_practically_the_same(minilm):
    encoder = load_encoder(precision="bfloat16", device="cpu")
    vectors, expected = encoder.encode(TEXTS), minilm.encode(TEXTS)
    assert vectors.dtype == np.float32
    assert encoder.description == minilm.description.model_copy(update={"precision": "bfloat16"})
    assert 0.999 < least_cosine(expected, vectors) < 1.0 - 1e-6
    assert np.abs(np.linalg.norm(vectors, axis=1) - 1.0).max() < 1e-5  # normalised in float32


def test_its_gradient_agrees_with_that_of_float32(minilm):
    encoder = load_encoder(precision="bfloat16", device="cpu")
    target = minilm.encode(["the dog sleeps on the mat."])
    ((_, expected),) = minilm.substitutions(["the cat sleeps on the mat."], target, 5)
    ((tokens, gains),) = encoder.substitutions(["the cat sleeps on the mat."], target, 5)
    assert gains.dtype == np.float32
    assert np.abs(gains[:, 0] - expected[:, 0]).max() < 0.1 * np.abs(expected[:, 0]).max()
    assert minilm.tokenizer.token_to_id("dog") in tokens[1]


def test_auto_takes_it_where_it_is_native_and_agrees(native):
    native(True)
    assert load_encoder(precision="auto", device="cpu").description.precision == "bfloat16"


def test_auto_stays_with_float32_where_it_is_emulated(native, minilm):
    native(False)
    encoder = load_encoder(precision="auto", device="cpu")
    assert encoder.description.precision == "float32"
    np.testing.assert_array_equal(encoder.encode(TEXTS), minilm.encode(TEXTS))


def test_auto_goes_back_to_the_exact_weights_where_vectors_would_change(native, minilm, monkeypatch):
    native(True)
    monkeypatch.setattr(sentence_transformer, "least_cosine", lambda expected, given: 0.999)
    encoder = load_encoder(precision="auto", device="cpu")
    assert encoder.description == minilm.description
    np.testing.assert_array_equal(encoder.encode(TEXTS), minilm.encode(TEXTS))


def test_an_encoder_that_has_float32_only_refuses_another():
    with pytest.raises(ConfigError, match="does not support precision"):
        load_encoder("use-multilingual-v3", precision="bfloat16")


def test_emulation_does_not_count(monkeypatch):
    monkeypatch.setattr(torch.cpu, "_is_avx512_bf16_supported", lambda: False)
    monkeypatch.setattr(torch.cpu, "_is_amx_tile_supported", lambda: False)
    assert not has_native_bfloat16(torch.device("cpu"))
    monkeypatch.setattr(torch.cpu, "_is_amx_tile_supported", lambda: True)
    assert has_native_bfloat16(torch.device("cpu"))
    assert not has_native_bfloat16(torch.device("mps"))


def test_the_least_cosine_is_that_of_the_worst_row():
    vectors = np.eye(3)
    changed = vectors.copy()
    changed[1] = [0.6, 0.8, 0.0]
    assert least_cosine(vectors, 5 * changed) == pytest.approx(0.8)
    assert len(PROBES) > 10


def test_a_store_records_it_and_one_of_an_earlier_version_was_made_in_float32(fake_encoder, tmp_path):
    fake_encoder.description = fake_encoder.description.model_copy(update={"precision": "bfloat16"})
    embed_texts(["the cat", "the dog"].__iter__, tmp_path, fake_encoder)
    written = json.loads((tmp_path / "manifest.json").read_text())
    assert written["encoder"]["precision"] == "bfloat16"
    assert Manifest.load(tmp_path).encoder.precision == "bfloat16"
    del written["encoder"]["precision"]
    assert EncoderDescription.model_validate(written["encoder"]).precision == "float32"


def test_the_command_line_chooses_it(run_cli, tmp_path):
    (tmp_path / "texts.txt").write_text("the cat\nthe dog runs\n")
    options = ("embed", tmp_path / "texts.txt", "-o", tmp_path / "store", "--precision")
    ended = run_cli(*options, "bfloat16")
    assert ended.code == 0, ended.err
    assert "in bfloat16" in ended.out + ended.err
    assert Manifest.load(tmp_path / "store").encoder.precision == "bfloat16"
    refused = run_cli(*options, "float32")
    assert refused.code == 2
    assert "encoder precision 'bfloat16', not 'float32'" in refused.err
