"""The surrogate: a small stand-in for the encoder, trained on the same pairs. Its start is in test_pretrained.py."""

import os
import signal

import pytest
import torch
from pydantic import ValidationError
from safetensors.torch import load_file
from torch.testing import assert_close

from unembed.checkpoint import load_checkpoint
from unembed.config import ModelRecipe
from unembed.training import Callbacks, train


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
