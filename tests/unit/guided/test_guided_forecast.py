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


CENTRE, OTHERS = (1, 2, 3, 4, 5), [(1, 2, 9, 4, 5), (5, 4, 3, 2, 1), (1, 2, 3), (1, 2, 3, 4, 5, 9)]


def draft_perfectly(texts):
    return np.stack([embed(text) for text in texts])


def make_forecast(draft, known=400):
    random = np.random.default_rng(1)
    forecast = Forecast(8, draft)
    learn(forecast, [tuple(random.integers(0, 10, 6).tolist()) for _ in range(known)])
    return forecast


class TestDrafts:
    """Where something drafts vectors, it can look closely."""

    def test_only_with_drafts_can_it_look_closely(self):
        assert Forecast(8, draft_perfectly).drafts
        assert not Forecast(8).drafts

    @pytest.mark.parametrize("known", [0, 400])
    def test_with_perfect_drafts_it_predicts_exactly(self, known):
        forecast = make_forecast(draft_perfectly, known)
        truth = draft_perfectly(OTHERS)
        assert np.allclose(forecast.predict(CENTRE, embed(CENTRE), OTHERS, closely=True), truth, atol=1e-4)
        assert not np.allclose(forecast.predict(CENTRE, embed(CENTRE), OTHERS), truth, atol=0.1)

    def test_drafts_that_are_always_the_same_leave_what_it_knows_without_them(self):
        with_drafts, without = make_forecast(lambda texts: np.full((len(texts), 8), 7.0)), make_forecast(None)
        closely = with_drafts.predict(CENTRE, embed(CENTRE), OTHERS, closely=True)
        assert np.allclose(closely, without.predict(CENTRE, embed(CENTRE), OTHERS), atol=1e-4)

    def test_at_a_glance_drafts_do_not_count(self):
        noise = np.random.default_rng(2)
        with_drafts, without = make_forecast(lambda texts: noise.normal(size=(len(texts), 8))), make_forecast(None)
        at_a_glance = with_drafts.predict(CENTRE, embed(CENTRE), OTHERS)
        assert np.allclose(at_a_glance, without.predict(CENTRE, embed(CENTRE), OTHERS), atol=1e-4)

    def test_knowing_nothing_it_expects_the_difference_of_the_drafts(self):
        def draft(texts):
            return draft_perfectly(texts) + 100.0  # the same for all texts, so it cancels

        predicted = Forecast(8, draft).predict(CENTRE, np.ones(8), OTHERS, closely=True)
        assert np.allclose(predicted, 1.0 + draft_perfectly(OTHERS) - embed(CENTRE))

    def test_it_corrects_what_drafts_always_get_wrong(self):
        wrong = np.array([3.0, -3.0, 0.0, 0.0, 3.0, 0.0, 0.0, -3.0])

        def draft(texts):
            """Misjudge one token, wherever it stands."""
            return draft_perfectly(texts) + np.array([[text.count(9)] for text in texts]) * wrong

        def error(forecast):
            (predicted,) = forecast.predict(CENTRE, embed(CENTRE), OTHERS[:1], closely=True)
            return np.linalg.norm(predicted - embed(OTHERS[0]))

        assert error(Forecast(8, draft)) == pytest.approx(np.linalg.norm(wrong))
        assert error(make_forecast(draft)) < 0.2 * np.linalg.norm(wrong)

    def test_each_text_is_drafted_once(self):
        asked = []

        def draft(texts):
            asked.extend(texts)
            return draft_perfectly(texts)

        forecast = make_forecast(draft, known=3)
        for _ in range(2):
            forecast.predict(CENTRE, embed(CENTRE), [*OTHERS, *OTHERS], closely=True)
            forecast.predict(OTHERS[0], embed(OTHERS[0]), [CENTRE, *OTHERS], closely=True)
            learn(forecast, OTHERS)
        assert {CENTRE, *OTHERS} < set(asked)
        assert len(asked) == len(set(asked)) == 3 + 1 + len(OTHERS)
