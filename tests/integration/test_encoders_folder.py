"""Models of sentence-transformers in folders: made here, with random weights, in the format of the hub."""

import json
import time

import huggingface_hub.constants
import numpy as np
import pytest
from sentence_transformers import SentenceTransformer
from sentence_transformers.sentence_transformer.modules import Dense, Normalize
from transformers.utils import logging as transformers_logging

from unembed.encoders import load_encoder
from unembed.errors import EncoderError, StoreError
from unembed.store import embed_texts

TEXTS = [
    "the cat",
    "the dog runs in the park and the bird sings.",
    "Xylophone!",
    "",
    "the cat",
    "  the cat [MASK] 東京 " * 30,
]


def own_vectors(folder, **options):
    return SentenceTransformer(str(folder), device="cpu").encode(TEXTS, show_progress_bar=False, **options)


def test_a_normalised_mean_of_tokens(build_encoder_folder):
    folder = build_encoder_folder("mean-model", last=[Normalize()])
    encoder = load_encoder(str(folder), device="cpu")
    assert encoder._own_batches
    np.testing.assert_allclose(encoder.encode(TEXTS, batch_size=2), own_vectors(folder), atol=1e-5)
    description = encoder.description
    assert (description.name, description.dim, description.prompt) == ("mean-model", 32, None)
    assert (description.pooling, description.normalised) == ("mean", True)


def test_the_first_token_not_normalised(build_encoder_folder):
    folder = build_encoder_folder("cls-model", pooling="cls")
    encoder = load_encoder(str(folder), device="cpu")
    vectors = encoder.encode(TEXTS)
    assert encoder._own_batches
    np.testing.assert_allclose(vectors, own_vectors(folder), atol=1e-5)
    assert (encoder.description.pooling, encoder.description.normalised) == ("cls", False)
    assert np.abs(np.linalg.norm(vectors, axis=1) - 1.0).min() > 0.1


def test_a_dense_head_changes_the_dimension(build_encoder_folder):
    folder = build_encoder_folder("dense-model", last=[Dense(32, 12), Normalize()])
    encoder = load_encoder(str(folder), device="cpu")
    assert encoder.description.dim == 12
    np.testing.assert_allclose(encoder.encode(TEXTS), own_vectors(folder), atol=1e-5)


def test_vectors_that_the_model_cuts_short_are_cut_short(build_encoder_folder):
    folder = build_encoder_folder("matryoshka", truncate_dim=8)
    config = json.loads((folder / "config_sentence_transformers.json").read_text())
    (folder / "config_sentence_transformers.json").write_text(json.dumps(config | {"truncate_dim": 8}))
    encoder = load_encoder(str(folder), device="cpu")
    expected = own_vectors(folder)
    assert encoder.description.dim == expected.shape[1] == 8
    np.testing.assert_allclose(encoder.encode(TEXTS), expected, atol=1e-5)


def test_the_prompt_that_a_model_uses_by_itself_is_used_and_recorded(build_encoder_folder):
    prompts = {"prompts": {"search": "the dog "}, "default_prompt_name": "search"}
    folder = build_encoder_folder("prompted-model", last=[Normalize()], **prompts)
    encoder = load_encoder(str(folder), device="cpu")
    assert encoder.description.prompt == "the dog "
    np.testing.assert_allclose(encoder.encode(TEXTS), own_vectors(folder), atol=1e-5)
    again = load_encoder(str(folder), device="cpu", prompt=encoder.description.prompt)
    assert again.description == encoder.description
    without = load_encoder(str(folder), device="cpu", prompt="")
    assert without.description.prompt == ""
    np.testing.assert_allclose(without.encode(TEXTS), own_vectors(folder, prompt=""), atol=1e-5)
    assert np.abs(without.encode(TEXTS) - encoder.encode(TEXTS)).max() > 0.01


def test_a_prompt_that_is_left_out_of_the_mean_is_left_out(build_encoder_folder):
    folder = build_encoder_folder("instructor")
    path = next(folder.glob("*_Pooling")) / "config.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | {"include_prompt": False}))
    encoder = load_encoder(str(folder), device="cpu", prompt="the old king ")
    expected = own_vectors(folder, prompt="the old king ")
    np.testing.assert_allclose(encoder.encode(TEXTS), expected, atol=1e-5)
    included = load_encoder(str(build_encoder_folder("instructor")), device="cpu", prompt="the old king ")
    assert np.abs(included.encode(TEXTS) - expected).max() > 0.01


def test_a_text_beyond_the_limit_is_cut_on_the_side_that_the_model_cuts(build_encoder_folder):
    folder = build_encoder_folder("left-cutting", max_seq_length=10)
    path = folder / "tokenizer_config.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | {"truncation_side": "left"}))
    encoder = load_encoder(str(folder), device="cpu")
    np.testing.assert_allclose(encoder.encode(TEXTS), own_vectors(folder), atol=1e-5)
    end = "the dog runs in the park and home"
    np.testing.assert_allclose(*encoder.encode([f"a bird {end}", f"my horse {end}"]), atol=1e-5)


def test_a_folder_of_the_same_name_with_other_weights_is_another_encoder(build_encoder_folder, tmp_path):
    texts, encoder = ["the cat", "a dog"], load_encoder(str(build_encoder_folder("same")), device="cpu")
    embed_texts(texts.__iter__, tmp_path / "store", encoder)
    embed_texts(texts.__iter__, tmp_path / "store", load_encoder(str(build_encoder_folder("same")), device="cpu"))
    with pytest.raises(StoreError, match="encoder revision 'folder-"):
        embed_texts(
            texts.__iter__, tmp_path / "store", load_encoder(str(build_encoder_folder("same", seed=1)), device="cpu")
        )


def test_loading_is_silent_and_the_bars_of_others_stay(build_encoder_folder, capfd):
    folder = str(build_encoder_folder("silent"))
    capfd.readouterr()
    assert transformers_logging.is_progress_bar_enabled()
    load_encoder(folder, device="cpu")
    assert capfd.readouterr() == ("", "")
    assert transformers_logging.is_progress_bar_enabled()
    transformers_logging.disable_progress_bar()
    try:
        load_encoder(folder, device="cpu")
        assert not transformers_logging.is_progress_bar_enabled()
    finally:
        transformers_logging.enable_progress_bar()


@pytest.mark.parametrize("damage", ["truncated weights", "no weights", "bad modules", "no pooling"])
def test_a_damaged_folder_is_an_error_with_a_remedy(build_encoder_folder, damage):
    folder = build_encoder_folder("damaged")
    weights = folder / "model.safetensors"
    if damage == "truncated weights":
        weights.write_bytes(weights.read_bytes()[:-100])
    elif damage == "no weights":
        weights.unlink()
    elif damage == "bad modules":
        (folder / "modules.json").write_text("[{")
    else:
        (next(folder.glob("*_Pooling")) / "config.json").unlink()
    with pytest.raises(EncoderError, match="Cannot load the encoder 'damaged': .+") as caught:
        load_encoder(str(folder), device="cpu")
    assert caught.value.remedy


def test_a_model_that_is_neither_here_nor_within_reach_is_refused_in_reasonable_time(monkeypatch):
    # Nothing listens there, as on a machine without a network.
    monkeypatch.setattr(huggingface_hub.constants, "ENDPOINT", "http://127.0.0.1:9")
    monkeypatch.setattr(huggingface_hub.constants, "HF_HUB_OFFLINE", False)
    begun = time.monotonic()
    with pytest.raises(EncoderError, match="Cannot load the encoder 'no-such/model'") as caught:
        load_encoder("no-such/model", device="cpu")
    assert "connection" in caught.value.remedy
    assert time.monotonic() - begun < 10  # the hub's own client would try again for more than a minute
