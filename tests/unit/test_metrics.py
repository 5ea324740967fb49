import pytest
from hypothesis import given
from hypothesis import strategies as st

from unembed.measures import exact_match, token_accuracy, token_f1

texts = st.lists(st.integers(0, 9), min_size=1, max_size=12)


@given(text=texts)
def test_a_text_recovers_itself_fully(text):
    assert token_accuracy(text, text) == token_f1(text, text) == exact_match(text, text) == 1.0


@given(one=texts, other=texts)
def test_measures_are_shares(one, other):
    assert all(0.0 <= measure(one, other) <= 1.0 for measure in (token_accuracy, token_f1, exact_match))


def test_accuracy_goes_by_position_and_f1_does_not():
    assert token_accuracy([2, 1, 3], [1, 2, 3]) == pytest.approx(1 / 3)
    assert token_f1([2, 1, 3], [1, 2, 3]) == 1.0


def test_accuracy_counts_the_reference_s_positions():
    assert token_accuracy([1, 2], [1, 2, 3, 4]) == 0.5
    assert token_accuracy([1, 2, 3, 4], [1, 2]) == 1.0


def test_f1_counts_a_repeated_token_as_often_as_it_is_there():
    assert token_f1([1, 1, 1], [1, 2, 3]) == pytest.approx(1 / 3)


def test_a_longer_text_is_no_exact_match():
    assert exact_match([1, 2, 3], [1, 2]) == 0.0
