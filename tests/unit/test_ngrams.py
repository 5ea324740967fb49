"""Which tokens follow which."""

import itertools
import math

import numpy as np
import pytest

from unembed.errors import CheckpointError
from unembed.model import NGrams

VOCABULARY = 12


def count(*texts, times=8, vocabulary=VOCABULARY):
    longest = max(len(text) for text in texts)
    ids = np.zeros((len(texts) * times, longest), dtype=np.int64)
    lengths = np.array([len(text) for text in texts] * times)
    for row, text in enumerate(texts * times):
        ids[row, : len(text)] = text
    half = len(ids) // 2
    return NGrams.count(lambda: [(ids[:half], lengths[:half]), (ids[half:], lengths[half:])], vocabulary)


def test_the_order_of_the_training_texts_is_likelier_than_any_other():
    ngrams = count((1, 2, 3, 4), (5, 6, 7))
    orders = list(itertools.permutations((1, 2, 3, 4)))
    assert orders[int(ngrams.log_odds(orders).argmax())] == (1, 2, 3, 4)


def test_probabilities_of_all_tokens_add_up_to_one():
    ngrams = count((1, 2, 3, 4), (5, 2, 3), (2, 2, 6))
    everything = np.arange(VOCABULARY)
    for first, second in ((1, 2), (2, 2), (9, 9), (VOCABULARY, 1), (2, 3)):
        after, _ = ngrams._log_probabilities(np.full(VOCABULARY, first), np.full(VOCABULARY, second), everything)
        assert math.isclose(np.exp(after).sum(), 1.0, rel_tol=1e-6)


def test_a_third_token_depends_on_the_first():
    ngrams = count((1, 2, 3), (4, 2, 5))
    assert ngrams.log_odds([(1, 2, 3)])[0] > ngrams.log_odds([(4, 2, 3)])[0]


def test_texts_of_different_lengths_are_scored_together_as_alone():
    ngrams = count((1, 2, 3, 4), (5, 6, 7))
    texts = [(1, 2), (5, 6, 7, 1), (3,)]
    np.testing.assert_allclose(ngrams.log_odds(texts), [ngrams.log_odds([text])[0] for text in texts])


def test_no_texts_have_no_scores():
    assert len(count((1, 2)).log_odds([])) == 0


def test_what_occurs_once_is_left_out():
    ngrams = count((1, 2, 3), times=2)
    assert not len(ngrams.pairs)
    assert np.isfinite(ngrams.log_odds([(1, 2, 3)])).all()


def test_pairs_may_be_all_there_is():
    ngrams = count((1, 2, 3), times=3)
    assert len(ngrams.pairs)
    assert not len(ngrams.triples)
    assert ngrams.log_odds([(1, 2, 3)])[0] > ngrams.log_odds([(3, 2, 1)])[0]


def test_a_file_holds_the_same():
    ngrams = count((1, 2, 3, 4), (5, 6, 7), times=50)
    loaded = NGrams.from_bytes(ngrams.to_bytes())
    texts = [(1, 2, 3, 4), (4, 3, 2, 1), (5, 6)]
    np.testing.assert_array_equal(loaded.log_odds(texts), ngrams.log_odds(texts))
    assert (loaded.usual, loaded.surprise) == (ngrams.usual, ngrams.surprise)


def test_a_usual_text_has_the_fluency_of_usual_tokens():
    ngrams = count((1, 2, 3, 4), (5, 6, 7, 8))
    usual = ngrams.fluency([(1, 2, 3, 4), (5, 6, 7, 8)]).mean()
    assert usual == pytest.approx(-4 * ngrams.surprise, rel=0.01)


@pytest.mark.parametrize("contents", [b"", b"not an archive", b"PK\x03\x04"])
def test_a_damaged_file_is_an_error(contents):
    with pytest.raises(CheckpointError, match="n-grams cannot be read"):
        NGrams.from_bytes(contents)
