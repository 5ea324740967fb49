"""The surrogate: a small stand-in for the encoder, trained on the same pairs. Its start is in test_pretrained.py."""

import os
import signal

import numpy as np
import pytest
import torch
from pydantic import ValidationError
from safetensors.torch import load_file
from tokenizers import Tokenizer, models, pre_tokenizers
from torch.testing import assert_close

from unembed.checkpoint import load_checkpoint
from unembed.config import DecodingConfig, ModelRecipe, TrainingConfig
from unembed.decoding.guided.surrogate import SurrogateEncoder
from unembed.encoders import EncoderDescription, load_encoder
from unembed.errors import ConfigError
from unembed.store import Store, embed_texts
from unembed.training import Callbacks, train
from unembed.training.distillation import change


def build_with_surrogate(build_model, surrogate_layers, **settings):
    return build_model(freeze_token_embeddings=True, surrogate={"layers": surrogate_layers}, **settings)


def run(recipe, callbacks=None, **options):
    return train(recipe, device="cpu", callbacks=callbacks, **options)


MPNET = {"norm": "post", "architecture": "mpnet"}
MODERNBERT = {"architecture": "modernbert", "rotary": {"window": 4}}


@pytest.mark.parametrize("settings", [{}, {"norm": "post"}, MPNET, MODERNBERT])
def test_its_vectors_have_length_one_and_depend_on_the_order_of_the_tokens(build_model, stir, settings):
    model = stir(build_with_surrogate(build_model, 2, **settings))
    ids = torch.tensor([[1, 2, 3, 4], [4, 3, 2, 1]])
    vectors = model.surrogate(model.denoiser.token_embedding(ids))
    assert vectors.shape == (2, 16)
    assert_close(vectors.norm(dim=1), torch.ones(2))
    assert not torch.allclose(vectors[0], vectors[1], atol=1e-3)


def test_it_needs_token_embeddings_that_stay_as_they_are():
    with pytest.raises(ValidationError, match="freeze_token_embeddings"):
        ModelRecipe(surrogate={"layers": 1})


SURROGATE = {"freeze_token_embeddings": True, "surrogate": {"layers": 1}}


@pytest.fixture
def surrogate_recipe(recipe, tmp_path):
    """Recipes that give a finished inverter a surrogate."""
    run(recipe(training={"output": tmp_path / "first", "steps": 3}))

    def build(name="second", **changes):
        start = {"start_from": {"inverter": tmp_path / "first" / "latest"}, "output": tmp_path / name, "steps": 3}
        stage = {"surrogate": {"steps": 30, "batch_size": 8, "learning_rate": 1e-2}}
        return recipe(model=SURROGATE, training=start | stage | changes)

    return build


def fidelity(folder):
    return float(load_checkpoint(folder).model.surrogate.fidelity)


def test_training_brings_it_nearer_to_the_encoder_and_the_inverter_says_how_near(surrogate_recipe, tmp_path):
    run(surrogate_recipe("short", surrogate={"steps": 1, "batch_size": 8}))
    run(surrogate_recipe())
    assert fidelity(tmp_path / "second" / "latest") > fidelity(tmp_path / "short" / "latest") + 0.1
    metrics = load_checkpoint(tmp_path / "second" / "latest").info.metrics
    assert metrics["surrogate_cosine"] == pytest.approx(fidelity(tmp_path / "second" / "latest"))


def test_a_run_from_an_inverter_keeps_its_surrogate(surrogate_recipe, tmp_path):
    run(surrogate_recipe())
    start = {"start_from": {"inverter": tmp_path / "second" / "latest"}, "surrogate": {"steps": 0}}
    run(surrogate_recipe("third", **start))
    before, after = (load_file(tmp_path / name / "latest" / "model.safetensors") for name in ("second", "third"))
    names = [name for name in before if name.startswith("surrogate.")]
    assert names
    assert all(torch.equal(before[name], after[name]) for name in names)


def test_a_surrogate_that_was_stopped_half_way_becomes_that_of_an_uninterrupted_run(surrogate_recipe, tmp_path):
    def stop(label, done, _total):
        if label == "Training the surrogate" and done == 7:
            os.kill(os.getpid(), signal.SIGTERM)

    run(surrogate_recipe("whole"))
    assert run(surrogate_recipe("parts"), Callbacks(on_stage=stop)).reason == "interrupted"
    steps = []
    run(surrogate_recipe("parts"), Callbacks(on_stage=lambda *stage: steps.append(stage)), resume=True)
    assert [done for label, done, _ in steps if label == "Training the surrogate"] == list(range(8, 31))
    whole, parts = (load_file(tmp_path / name / "best" / "model.safetensors") for name in ("whole", "parts"))
    assert all(torch.equal(whole[key], parts[key]) for key in whole)


@pytest.fixture
def distilling(recipe, build_encoder_folder, tiny_store, tmp_path):
    """Recipes that distil an encoder of two layers of 64 into a surrogate of two layers of 16."""
    folder = build_encoder_folder("tiny-bert")
    encoder = load_encoder(str(folder), device="cpu")
    for split in ("train", "validation"):
        store = Store(tiny_store / split)
        rows = zip(store.tokens(np.arange(len(store))), store.lengths, strict=True)
        texts = [store.tokenizer().decode(ids[:length].tolist()) for ids, length in rows]
        embed_texts(texts.__iter__, tmp_path / "store" / split, encoder, canvas_length=12)

    def build(**changes):
        shape = {"width": 32, "heads": 2, "norm": "post", "surrogate": {"layers": 2, "feedforward": 16}}
        stage = {"steps": 60, "batch_size": 8, "learning_rate": 3e-3, "distil": True} | changes
        return recipe(
            encoder={"name": "tiny-bert"},
            data={"store": tmp_path / "store"},
            model=shape | {"freeze_token_embeddings": True, "feedforward": 64},
            training={"output": tmp_path / f"run-{stage['steps']}", "start_from": {"encoder": str(folder)}}
            | {"steps": 3, "surrogate": stage},
        )

    return build


def test_distilled_from_the_encoder_it_comes_nearer_than_it_starts(distilling, tmp_path):
    run(distilling(steps=1, learning_rate=1e-9))
    run(distilling())
    started, distilled = (fidelity(tmp_path / f"run-{steps}" / "latest") for steps in (1, 60))
    assert distilled > started + 0.03


def test_an_encoder_that_does_not_give_the_vectors_of_the_store_is_not_distilled(recipe, build_encoder_folder):
    folder = build_encoder_folder("tiny-bert")
    shape = {"width": 32, "heads": 2, "feedforward": 64, "norm": "post"}
    start = {"start_from": {"encoder": str(folder)}, "surrogate": {"steps": 1, "distil": True}}
    with pytest.raises(ConfigError, match="cannot be distilled(.|\n)*surrogate.distil"):
        run(recipe(model=shape | SURROGATE, training=start | {"steps": 3}))


def test_without_an_encoder_to_start_from_there_is_nothing_to_distil():
    with pytest.raises(ValidationError, match="start_from.encoder"):
        TrainingConfig(surrogate={"distil": True})


@pytest.mark.parametrize("length", [1, 2, 3, 7, 11, 12])
def test_changed_texts_differ_keep_one_length_and_fit_a_canvas(length):
    texts = np.random.default_rng(0).integers(5, 40, (6, length))
    changed = [change(texts, 12, np.random.default_rng(seed)) for seed in range(60)]
    assert all(each.shape[0] == 6 and 1 <= each.shape[1] <= 12 for each in changed)
    assert {each.shape[1] for each in changed} >= ({length - 1, length, length + 1} if 3 < length < 10 else {length})
    assert sum(each.shape != texts.shape or (each != texts).any() for each in changed) > 40
    assert all(np.isin(each, texts).all() for each in changed), "tokens come from the texts themselves"


@pytest.fixture
def stand_in(build_model, stir):
    """A surrogate as an encoder of texts such as "w3 w5"."""
    tokenizer = Tokenizer(models.WordLevel({f"w{number}": number for number in range(40)}))
    tokenizer.pre_tokenizer = pre_tokenizers.Whitespace()
    description = EncoderDescription(name="fake", revision="1", dim=16, prompt=None, pooling="mean", normalised=True)
    model = stir(build_with_surrogate(build_model, 2, norm="post"))
    return model, SurrogateEncoder(model, tokenizer, description)


def test_as_an_encoder_it_gives_each_text_its_own_vector_however_they_are_batched(stand_in):
    model, encoder = stand_in
    texts = ["w3 w5", "w7", "w5 w3", "w2 w9 w4"]
    vectors = torch.from_numpy(encoder.encode(texts))
    for text, vector in zip(texts, vectors, strict=True):
        ids = torch.tensor([[int(word[1:]) for word in text.split()]])
        assert_close(vector, model.surrogate(model.denoiser.token_embedding(ids))[0], atol=0.02, rtol=0.0)


def test_ids_get_the_vectors_of_their_texts_in_the_order_given(stand_in):
    _, encoder = stand_in
    rows = [(3, 5), (7,), (5, 3), (2, 9, 4), (8,)]
    texts = [" ".join(f"w{number}" for number in row) for row in rows]
    vectors = encoder.encode_ids(rows, batch_size=2)
    assert vectors.dtype == np.float32
    assert_close(vectors, encoder.encode(texts))
    for row, vector in zip(rows, vectors, strict=True):
        assert_close(vector, encoder.encode_ids([row])[0], atol=0.01, rtol=0.0)


def test_of_more_ids_than_a_canvas_holds_the_first_are_read(stand_in):
    _, encoder = stand_in
    ids = tuple(range(2, 22))
    cut, whole, shorter = encoder.encode_ids([ids, ids[:12], ids[:11]])
    assert_close(cut, whole)
    assert not np.allclose(whole, shorter, atol=0.01)
    assert_close(encoder.encode([" ".join(f"w{number}" for number in ids)])[0], whole)


@pytest.mark.parametrize("rounded", [True, False])
def test_rounding_changes_its_vectors_little_and_the_model_not_at_all(stand_in, monkeypatch, rounded):
    model, exact = stand_in
    monkeypatch.setattr("unembed.model.precision.has_native_bfloat16", lambda device: rounded)
    before = {name: weight.clone() for name, weight in model.surrogate.state_dict().items()}
    encoder = SurrogateEncoder(model, exact.tokenizer, exact.description)
    rows = [(3, 5), (7, 2), (5, 3)]
    with torch.no_grad():
        expected = model.surrogate(model.denoiser.token_embedding(torch.tensor(rows))).numpy()
    assert_close(encoder.encode_ids(rows), expected, atol=0.02 if rounded else 1e-6, rtol=0.0)
    ((tokens, _),) = encoder.substitutions(["w3 w9"], encoder.encode(["w3 w5"]), 4)
    assert tokens.shape == (2, 4)
    after = model.surrogate.state_dict()
    assert all(
        weight.dtype == after[name].dtype and torch.equal(weight, after[name]) for name, weight in before.items()
    )


def test_its_gradient_ranks_substitutions_without_the_forbidden_ones(stand_in):
    _, encoder = stand_in
    target = encoder.encode(["w3 w5"])
    ((tokens, gains),) = encoder.substitutions(["w3 w9"], target, 4, forbidden=[6])
    assert tokens.shape == gains.shape == (2, 4)
    assert (gains[:, :-1] >= gains[:, 1:]).all()
    assert 6 not in tokens
    assert 3 not in tokens[0], "the token itself is no substitute"


def test_an_inverter_without_a_surrogate_says_how_to_get_one(build_model, stand_in):
    _, encoder = stand_in
    with pytest.raises(ConfigError, match="no surrogate(.|\n)*model.surrogate and training.surrogate"):
        SurrogateEncoder(build_model(), encoder.tokenizer, encoder.description)


@pytest.fixture
def inverter(make_inverter):
    return make_inverter(readout="linear", freeze_token_embeddings=True, surrogate={"layers": 2}, norm="post")


def test_a_search_with_it_comes_nearer_than_blind_decoding_and_asks_no_encoder(inverter):
    texts = [inverter.tokenizer.decode(ids) for ids in ([20, 31, 25], [22, 27, 29, 24])]
    vectors = inverter.surrogate.encode(texts)
    blind = inverter.surrogate.encode([each.text for each in inverter.invert(vectors)])
    for before, vector, after in zip(blind, vectors, inverter.invert(vectors, strategy="surrogate"), strict=True):
        assert after.score > before @ vector + 0.01
        assert (after.strategy, after.encoder_calls) == ("surrogate", 0)
        assert after.surrogate_calls > 0


def test_it_drafts_for_a_guided_search_and_only_the_encoder_is_counted(inverter, fake_encoder, monkeypatch):
    vectors = fake_encoder.encode([inverter.tokenizer.decode([20, 31, 25])])
    draft, drafted = inverter.surrogate.encode_ids, []
    monkeypatch.setattr(inverter.surrogate, "encode_ids", lambda texts: drafted.extend(texts) or draft(texts))
    before = len(fake_encoder.seen)
    (found,) = inverter.invert(vectors, strategy="guided", encoder=fake_encoder, guided={"rounds": 4})
    assert drafted
    assert len(drafted) == len(set(drafted)), "texts were drafted twice"
    assert (found.encoder_calls, found.surrogate_calls) == (len(fake_encoder.seen) - before, 0)


def test_a_search_with_it_is_not_drafted_by_it(inverter, fake_encoder):
    rounds = inverter.search_rounds(np.ones((1, 16)), strategy="surrogate")
    assert rounds.oracle.draft is None
    rounds = inverter.search_rounds(np.ones((1, 16)), strategy="guided", encoder=fake_encoder)
    assert rounds.oracle.draft is not None


def test_an_inverter_without_one_drafts_nothing(make_inverter, fake_encoder):
    rounds = make_inverter().search_rounds(np.ones((1, 16)), strategy="guided", encoder=fake_encoder)
    assert rounds.oracle.draft is None


def test_its_rounds_can_be_taken_one_by_one(inverter):
    vectors = inverter.surrogate.encode([inverter.tokenizer.decode([20, 31])])
    rounds = inverter.search_rounds(vectors, strategy="surrogate", surrogate={"rounds": 3})
    *_, last = rounds
    (whole,) = inverter.invert(vectors, strategy="surrogate", surrogate={"rounds": 3})
    assert inverter.read(last[0], DecodingConfig(strategy="surrogate"))[0] == whole


def test_only_searches_have_rounds(inverter):
    with pytest.raises(ConfigError, match="'confidence' does not search(.|\n)*surrogate or guided"):
        inverter.search_rounds(np.ones((1, 16)), DecodingConfig())


def test_the_strategy_is_refused_where_there_is_no_surrogate(make_inverter):
    with pytest.raises(ConfigError, match="no surrogate"):
        make_inverter().invert(np.ones((1, 16)), strategy="surrogate")
