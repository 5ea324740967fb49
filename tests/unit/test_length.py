"""The length head is fitted on rows of all lengths before the first step, and training leaves it alone."""

import pytest
import torch
import torch.nn.functional as F

from unembed.checkpoint import load_checkpoint
from unembed.config import ModelRecipe, Recipe, parse
from unembed.store import Store
from unembed.training import train
from unembed.training.compatibility import build_for_store
from unembed.training.length import fit_length_head

SHAPE = {"layers": 1, "width": 16, "heads": 2, "feedforward": 32}


def surprise(model, store):
    """How surprising the true lengths of a store are, in nats."""
    rows = range(len(store))
    lengths = torch.tensor(store.lengths[rows].tolist())
    return float(F.cross_entropy(model.length_logits(torch.from_numpy(store.embeddings(rows))), lengths - 1))


@pytest.mark.parametrize("widths", [None, [24, 20]])
def test_the_length_head_learns_more_than_how_common_each_length_is(tiny_store, widths):
    store = Store(tiny_store / "train")
    model = build_for_store(ModelRecipe(length_widths=widths, **SHAPE), store.manifest)
    hidden = [layer.out_features for layer in model.length_head if hasattr(layer, "out_features")][:-1]
    assert hidden == (widths or [16])
    stages = []
    fit_length_head(model, store, store, 0, lambda *stage: stages.append(stage))
    counts = torch.bincount(torch.tensor(store.lengths.tolist())).float()
    shares = counts[counts > 0] / counts.sum()
    assert surprise(model, store) < 0.8 * float(-(shares * shares.log()).sum())
    assert stages[-1] == ("Fitting the length head", len(stages), len(stages))


def test_a_fixed_canvas_has_no_length_to_learn(tiny_store):
    store = Store(tiny_store / "train")
    model = build_for_store(ModelRecipe(canvas="fixed", **SHAPE), store.manifest)
    fit_length_head(model, store, store, 0)
    assert model.length_head is None


def test_training_leaves_the_length_head_as_it_was_fitted(tiny_store, tmp_path):
    store = Store(tiny_store / "train")
    torch.manual_seed(0)
    model = build_for_store(ModelRecipe(**SHAPE), store.manifest)
    recipe = parse(
        Recipe,
        {
            "encoder": {"name": "fake"},
            "data": {"store": tiny_store, "canvas_length": 12, "validation_rows": 8},
            "model": SHAPE,
            "training": {"output": tmp_path / "run", "steps": 4, "warmup_steps": 1},
        },
        "test",
    )
    train(recipe, device="cpu")
    fit_length_head(model, store, Store(tiny_store / "validation"), recipe.training.seed)
    trained, latest = (load_checkpoint(tmp_path / "run" / name).model for name in ("best", "latest"))
    assert surprise(trained, store) == surprise(latest, store)
    assert surprise(trained, store) == pytest.approx(surprise(model, store), rel=1e-5)


def test_a_length_head_that_does_better_on_held_out_rows_stays(tiny_store):
    store, validation = Store(tiny_store / "train"), Store(tiny_store / "validation")
    model = build_for_store(ModelRecipe(**SHAPE), store.manifest)
    fit_length_head(model, validation, validation, 0)
    fitted = surprise(model, validation)
    fit_length_head(model, store, validation, 1)
    assert surprise(model, validation) == pytest.approx(fitted, rel=1e-6)
