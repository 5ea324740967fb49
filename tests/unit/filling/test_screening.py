"""Screening: a few embedded candidates say which others to try."""

import numpy as np
import pytest

from unembed.filling import Template
from unembed.filling.pieces import read_filled, read_pieces
from unembed.filling.screening import Screen
from unembed.filling.steps import finish

TEMPLATE = Template.parse("the {x} sleeps.")


@pytest.fixture
def pieces(tiny_tokenizer):
    numbers = [f"{number:04}" for number in range(10_000)]  # spelled digit by digit
    return finish(read_pieces(tiny_tokenizer, TEMPLATE, 0, numbers))


def test_pieces_are_the_tokens_inside_the_filled_text(any_tokenizer):
    values = ["cat", "old man", "garden", "xyzzy"]
    pieces = finish(read_pieces(any_tokenizer, TEMPLATE, 0, values))
    for number, value in enumerate(values):
        ids, (places,) = read_filled(any_tokenizer, TEMPLATE, [value])
        assert pieces.of(number) == [ids[place] for place in places]


def test_a_sum_over_places_is_learnt_from_a_few_and_the_best_is_predicted(pieces):
    random = np.random.default_rng(0)
    table = random.normal(size=(200, 24)).astype(np.float32)
    worth = random.normal(size=(4, 200))
    truth = worth[np.arange(4), pieces.ids[:, :4]].sum(1)
    known = random.choice(10_000, 300, replace=False)
    predicted, error = Screen(pieces, table).predict(known, truth[known])
    assert truth.argmax() in np.argsort(-predicted)[:10]
    assert np.corrcoef(predicted, truth)[0, 1] > 0.98
    assert error == pytest.approx(np.sqrt(np.mean((predicted - truth) ** 2)), rel=0.6)


def test_the_short_way_to_predict_is_the_product_with_the_features(pieces):
    random = np.random.default_rng(1)
    screen = Screen(pieces, random.normal(size=(200, 8)).astype(np.float32))
    weights = random.normal(size=screen.describe(np.arange(1)).shape[1])
    rows = np.arange(0, 10_000, 97)
    assert screen._apply(weights)[rows] == pytest.approx(screen.describe(rows) @ weights, abs=1e-4)
