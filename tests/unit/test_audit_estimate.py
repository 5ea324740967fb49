"""The estimate: what came back from known vectors with like signs; its interval holds for kinds left out."""

import json

import numpy as np
import pytest

from unembed.auditing.calibration import Calibration, Clues, load_stored, stored_for
from unembed.auditing.estimate import STEPS, KnownRecoveries, step_of
from unembed.auditing.intervals import angle, widen, wilson
from unembed.evaluation import Figure
from unembed.inverter import Inverter

RANDOM = np.random.default_rng(0)


def known(rows=400, sources=("a", "b", "c", "d"), shift=None, noise=0.05):
    """Recoveries whose one telling sign is the passage recall, up to noise and a shift of each source."""
    kinds = [sources[row % len(sources)] for row in range(rows)]
    sign = RANDOM.uniform(0, 1, rows)
    off = np.array([(shift or {}).get(kind, 0.0) for kind in kinds])
    recall = np.clip(sign + off + RANDOM.normal(0, noise, rows), 0, 1)
    return KnownRecoveries(kinds, sign[:, None], {"passage_recall": recall, "readable": (recall >= 0.5) * 1.0})


class TestKnownRecoveries:
    def test_a_value_that_follows_the_signs_is_read_off_them(self):
        expected = known().expect(np.array([[0.2], [0.45], [0.8]]))
        assert np.abs(expected["passage_recall"] - [0.2, 0.45, 0.8]).max() < 0.05
        assert expected["readable"][0] == 0
        assert expected["readable"][2] == 1

    def test_the_chances_agree_with_the_expected_values(self):
        """Whatever the signs are: the headline's share is the red part of the histogram."""
        known_ = known(shift={"a": 0.3, "b": -0.2}, noise=0.2)
        signs = RANDOM.uniform(-0.5, 1.5, (50, 1))
        chances, expected = known_.chances(signs), known_.expect(signs)
        assert chances.shape == (50, STEPS)
        assert chances.sum(1) == pytest.approx(np.ones(50))
        assert chances[:, STEPS // 2 :].sum(1) == pytest.approx(expected["readable"])

    def test_a_source_is_left_out_with_all_its_kinds(self):
        known_ = known(sources=("web", "web-long", "mail"))
        assert set(known_.without("web").kinds) == {"mail"}
        assert known_.errors["readable"].keys() == {"web", "mail"}

    def test_the_error_of_a_kind_is_that_of_estimating_it_from_the_others(self):
        errors = known(rows=2000, shift={"d": -0.3}).errors["passage_recall"]
        assert errors["d"] == pytest.approx(angle(0.5) - angle(0.24), abs=0.06)
        assert abs(errors["a"]) < 0.15

    def test_a_kind_like_no_other_makes_every_interval_wider(self):
        usual, strange = known().widening, known(shift={"d": -0.3}).widening
        assert usual["readable"] < 0.12
        assert strange["readable"] > 0.2

    def test_the_interval_of_each_kind_that_is_left_out_holds(self):
        known_ = known(rows=1000, shift={"a": 0.1, "b": -0.15, "c": 0.2})
        for source in "abcd":
            inside = known_.sources == source
            expected = known_.without(source).expect(known_.signs[inside])["readable"].mean()
            interval = widen(Figure(expected, expected, expected, 1), known_.widening["readable"])
            assert interval.low - 1e-9 <= known_.values["readable"][inside].mean() <= interval.high + 1e-9

    def test_of_few_known_texts_not_all_are_neighbours(self):
        few = known(rows=10, noise=0.0)
        low, high = few.expect(np.array([[0.0], [1.0]]))["passage_recall"]
        assert high - low > 0.3


@pytest.mark.parametrize(("value", "step"), [(0.0, 0), (0.3, 3), (0.499, 4), (0.5, 5), (0.999, 9), (1.0, 9)])
def test_a_share_lies_in_its_step(value, step):
    assert step_of(value) == step


class TestIntervals:
    def test_none_of_few_is_no_proof(self):
        assert wilson(0, 20).high == pytest.approx(0.161, abs=0.001)
        assert wilson(20, 20).low == pytest.approx(0.839, abs=0.001)
        assert wilson(0, 300).high < 0.013

    def test_the_value_lies_inside(self):
        for hits, n in ((0, 1), (1, 1), (3, 7), (299, 300)):
            figure = wilson(hits, n)
            assert 0 <= figure.low <= figure.value == hits / n <= figure.high <= 1

    def test_widening_keeps_to_shares(self):
        assert widen(Figure(0.5, 0.4, 0.6, 9), 0.0) == Figure(0.5, pytest.approx(0.4), pytest.approx(0.6), 9)
        wide = widen(Figure(0.5, 0.02, 0.98, 9), 0.3)
        assert (wide.low, wide.high) == (0.0, 1.0)


class TestClues:
    def test_a_line_through_the_vectors_is_found_whatever_their_norm(self):
        vectors = RANDOM.normal(size=(300, 8))
        directions = vectors / np.linalg.norm(vectors, axis=1, keepdims=True)
        targets = np.stack([directions[:, 0] + 2, directions[:, 1]], axis=1)
        clues = Clues.fit(vectors, targets, 1e-6)
        assert clues.read(7 * vectors) == pytest.approx(targets, abs=1e-3)
        assert Clues.none(8).read(vectors).shape == (300, 0)


class TestStored:
    def test_it_is_that_of_the_default_inverter(self):
        info = Inverter.default(device="cpu").info
        assert stored_for(info) is load_stored()
        assert stored_for(info.model_copy(update={"training_rows": 1})) is None

    def test_it_is_read_as_it_was_written(self):
        stored = load_stored()
        again = Calibration.from_json(json.loads(json.dumps(stored.to_json())))
        assert (again.known.signs == stored.known.signs).all()
        assert again.clues.weights.shape == (385, 2)

    def test_it_has_many_kinds_and_other_languages(self):
        blind = load_stored().known
        assert len(set(blind.sources)) >= 10
        assert 0.1 < blind.values["other_language"].mean() < 0.5

    def test_texts_that_may_be_unlike_the_audited_ones_widen_at_least_as_much(self):
        stored = load_stored()
        narrow = known()
        own = KnownRecoveries(narrow.kinds, narrow.signs, {"readable": narrow.values["readable"]})
        other = Calibration("x", stored.clues, own, "x", like_yours=False)
        assert other.widening["readable"] == stored.known.widening["readable"]
        like = Calibration("x", stored.clues, own, "x")
        assert like.widening == own.widening
