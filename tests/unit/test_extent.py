"""How long a text is can be said beyond what a canvas holds."""

import numpy as np
import pytest
import torch

from unembed.config import ModelRecipe
from unembed.errors import ConfigError
from unembed.model.extent import class_bounds
from unembed.store import Store
from unembed.training.compatibility import build_for_store
from unembed.training.length import fit_extent

SHAPE = {"layers": 1, "width": 16, "heads": 2, "feedforward": 32}


def test_short_texts_are_told_apart_by_the_token_and_long_ones_roughly():
    bounds = class_bounds(128).tolist()
    assert bounds[:16] == list(range(1, 17))
    assert bounds[-1] == 128
    assert max(late - early for early, late in zip(bounds, bounds[1:], strict=False)) <= 0.1 * 128
    assert class_bounds(5).tolist() == [1, 2, 3, 4, 5]


def test_its_quantiles_are_in_order_and_no_longer_than_the_longest(build_model, stir):
    model = stir(build_model(extent={"longest": 60, "width": 8}))
    lengths = model.text_lengths(torch.randn(50, 16), (0.1, 0.5, 0.9))
    assert (lengths.diff(dim=1) >= 0).all()
    assert int(lengths.min()) >= 1
    assert 12 < int(lengths.max()) <= 60, "the canvas holds 12"


def test_it_learns_the_lengths_of_a_store(tiny_store):
    store = Store(tiny_store / "train")
    torch.manual_seed(0)
    model = build_for_store(ModelRecipe(extent={"longest": 10, "width": 32}, **SHAPE), store.manifest)
    stages = []
    fit_extent(model, store, 0, lambda *stage: stages.append(stage))
    vectors = torch.from_numpy(store.embeddings(np.arange(len(store))))
    middle = model.text_lengths(vectors, (0.5,))[:, 0].numpy()
    true = np.minimum(store.lengths[:], 10)
    usual = np.abs(true - np.median(true)).mean()
    assert np.abs(middle - true).mean() < 0.7 * usual
    assert stages[-1] == ("Fitting the extent", len(stages), len(stages))
    assert not any(parameter.requires_grad for parameter in model.extent.parameters())


def test_a_store_of_shorter_texts_cannot_teach_it(tiny_store):
    store = Store(tiny_store / "train")
    model = build_for_store(ModelRecipe(extent={"longest": 500}, **SHAPE), store.manifest)
    with pytest.raises(ConfigError, match="cut to 12 tokens, the extent should know up to 500"):
        fit_extent(model, store, 0)


def test_without_an_extent_the_length_head_says_what_it_knows(build_model, stir):
    lengths = stir(build_model()).text_lengths(torch.randn(9, 16), (0.1, 0.9))
    assert lengths.shape == (9, 2)
    assert 1 <= int(lengths.min()) <= int(lengths.max()) <= 12
    assert build_model(canvas="fixed").text_lengths(torch.randn(9, 16), (0.5,)) is None


class TestWhatAnInverterSaysOfLongTexts:
    @pytest.fixture
    def inverter(self, make_inverter):
        """An inverter for 12 tokens to which all texts seem to have 50 to 60."""
        inverter = make_inverter(extent={"longest": 60, "width": 8})
        with torch.no_grad():
            inverter.model.extent.out.weight.zero_()
            inverter.model.extent.out.bias.copy_(torch.where(inverter.model.extent.bounds < 50, -50.0, 0.0))
        return inverter

    @pytest.fixture
    def vectors(self):
        drawn = np.random.default_rng(0).normal(size=(3, 16)).astype(np.float32)
        return drawn / np.linalg.norm(drawn, axis=1, keepdims=True)

    def test_it_estimates_how_long_they_are(self, inverter, vectors):
        lengths = inverter.text_lengths(vectors)
        assert lengths.shape == (3, 3)
        assert (lengths >= 50).all()

    def test_it_says_that_only_a_part_can_come_back(self, inverter, vectors):
        (notice,) = inverter.notices(vectors)
        assert notice.startswith("3 of 3 texts probably have 5")
        assert "writes at most 12" in notice
        (notice,) = inverter.notices(vectors[:1])
        assert notice.startswith("This text probably has 5")

    def test_inverting_logs_it_once(self, inverter, vectors, caplog):
        inverter.invert(vectors)
        inverter.invert(vectors)
        assert [message for message in caplog.messages if "tokens or more" in message] == inverter.notices(vectors)

    def test_long_texts_are_no_reason_to_doubt_the_vector(self, inverter, vectors):
        assert inverter.warnings(vectors) == []

    def test_it_says_nothing_where_texts_may_fit(self, make_inverter, vectors):
        assert make_inverter().notices(vectors) == []
