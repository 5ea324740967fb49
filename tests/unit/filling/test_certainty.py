"""Probabilities of answers: they add up, and fall with the distance that is left."""

import numpy as np
import pytest

from unembed.filling.certainty import features, judge, limit_free, probabilities


@pytest.mark.parametrize("way", ["encoder", "surrogate", "likelihood"])
def test_probabilities_of_all_answers_and_of_none_add_up_to_one(way):
    cosines, likelihoods = np.array([0.7, 0.95, 0.9]), np.array([-7.0, -2.0, -4.0])
    described = features(None if way == "likelihood" else cosines, None if way == "encoder" else likelihoods)
    order, shares, absent = probabilities(way, described, 500)
    assert order.tolist() == [1, 2, 0]
    assert np.all(np.diff(shares) <= 0)
    assert shares.sum() + absent == pytest.approx(1.0)


def test_an_exact_hit_is_certain_and_a_crowd_of_equals_is_not():
    exact = probabilities("encoder", features(np.array([1.0, 0.9, 0.89, 0.88]), None), 500)
    crowd = probabilities("encoder", features(np.array([0.801, 0.8, 0.799, 0.798]), None), 500)
    assert judge(exact[1][0], exact[2]) == "certain"
    assert judge(crowd[1][0], crowd[2]) in ("a guess", "not in the list")


def test_a_single_candidate_can_be_judged():
    _, shares, absent = probabilities("encoder", features(np.array([0.2]), None), 1)
    assert shares[0] + absent == pytest.approx(1.0)


@pytest.mark.parametrize(
    ("best", "absent", "words"),
    [(0.99, 0.0, "certain"), (0.7, 0.2, "likely"), (0.4, 0.3, "a guess"), (0.3, 0.6, "not in the list")],
)
def test_a_probability_has_a_word(best, absent, words):
    assert judge(best, absent) == words


def test_in_a_free_slot_only_an_exact_hit_is_more_than_a_guess():
    shares = np.array([0.96, 0.02])
    lowered, absent = limit_free(shares, 0.02, 0.98)
    assert lowered.sum() + absent == pytest.approx(1.0)
    assert judge(lowered[0], absent) in ("a guess", "not in the list")
    assert limit_free(shares, 0.02, 0.9999)[0] is shares
