"""The forecast of vectors from those of other texts."""

import numpy as np
import pytest

from unembed.decoding.guided.forecast import Forecast, describe

RANDOM = np.random.default_rng(0)
TOKENS = RANDOM.normal(size=(10, 8))
NEIGHBOURS = RANDOM.normal(size=(10, 10, 8))


def embed(ids):
    """Stand in for an encoder: its vectors depend on the words and on their neighbours."""
    pairs = sum((NEIGHBOURS[pair] for pair in zip(ids, ids[1:], strict=False)), np.zeros(8))
    return TOKENS[list(ids)].sum(0) + pairs


def learn(forecast, texts):
    forecast.learn(texts, [embed(text) for text in texts])


@pytest.fixture
def forecast():
    forecast = Forecast(8)
    learn(forecast, [tuple(RANDOM.integers(0, 10, 6).tolist()) for _ in range(400)])
    return forecast


def similarity(one, other):
    return float(np.sum(one * other) / np.linalg.norm(one) / np.linalg.norm(other))


def test_it_knows_what_a_token_does_from_other_texts(forecast):
    centre, changed = (1, 2, 3, 4, 5), (1, 2, 9, 4, 5)
    (predicted,) = forecast.predict(centre, embed(centre), [changed])
    assert similarity(predicted - embed(centre), embed(changed) - embed(centre)) > 0.8


def test_it_knows_what_an_exchange_of_two_tokens_does(forecast):
    centre, changed = (1, 2, 3, 4, 5), (1, 4, 3, 2, 5)
    (predicted,) = forecast.predict(centre, embed(centre), [changed])
    assert similarity(predicted - embed(centre), embed(changed) - embed(centre)) > 0.8


def test_the_text_that_it_is_asked_around_keeps_its_vector(forecast):
    (predicted,) = forecast.predict((1, 2, 3), np.ones(8), [(1, 2, 3)])
    assert np.allclose(predicted, np.ones(8))


def test_what_it_learns_later_counts(forecast):
    centre, changed = (1, 2, 3), (1, 2, 77)
    (before,) = forecast.predict(centre, embed(centre), [changed])
    forecast.learn([changed], [before + 10.0])
    (after,) = forecast.predict(centre, embed(centre), [changed])
    assert (after > before + 5.0).all()


def test_knowing_nothing_it_expects_no_difference():
    (predicted,) = Forecast(8).predict((1, 2), np.arange(8.0), [(3, 4, 5)])
    assert np.allclose(predicted, np.arange(8.0))


def test_texts_with_the_same_tokens_in_another_order_are_told_apart():
    one, other, same = describe([(1, 2, 3, 4), (4, 3, 2, 1), (1, 2, 3, 4)])
    assert (one == same).all()
    assert (one != other).any()
