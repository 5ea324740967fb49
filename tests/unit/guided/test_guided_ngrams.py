"""A guided search that knows which tokens follow which."""

import numpy as np
import pytest

from searches import make_hypothesis, make_search, take
from unembed.decoding.guided.fluency import FluencyScore
from unembed.decoding.guided.hypothesis import Proposal
from unembed.decoding.guided.moves import Subject, _with_order
from unembed.model import NGrams


@pytest.fixture
def ngrams():
    ids = np.array([[1, 2, 3, 4]] * 8)
    return NGrams.count(lambda: [(ids, np.full(8, 4))], 10)


def test_a_change_into_a_natural_order_gains_fluency(ngrams):
    subject = Subject(0, make_search(ngrams=ngrams), make_hypothesis((1, 3, 2, 4)))
    natural, other = _with_order(subject, [Proposal((1, 2, 3, 4), 0.5), Proposal((4, 3, 2, 1), 0.5)])
    assert natural.fluency > 0.5 > other.fluency


def test_without_ngrams_the_fluency_of_changes_stays():
    subject = Subject(0, make_search(), make_hypothesis((1, 3, 2, 4)))
    assert _with_order(subject, [Proposal((1, 2, 3, 4), 0.5)]) == [Proposal((1, 2, 3, 4), 0.5)]


def test_looking_ahead_prefers_the_natural_order(ngrams):
    def flat(texts):
        return np.tile(np.array([0.6, 0.8]), (len(texts), 1))

    search = make_search(ngrams=ngrams, draft=flat)
    parent = make_hypothesis((4, 3, 2, 1), vector=np.array([0.6, 0.8]))
    take(search, parent)
    take(search)  # a round without gain
    orders = [(1, 2, 3, 4), (2, 1, 4, 3), (4, 1, 3, 2)]
    assert search.look_ahead(parent, lambda ids, count: orders)[-1].ids == (1, 2, 3, 4)


def test_the_weight_of_fluency_falls_as_the_search_comes_nearer():
    fluency = FluencyScore(0.0005)
    weights = []
    for cosine in (0.5, 0.97, 0.98, 0.999):
        fluency.approach(cosine)
        weights.append(fluency.weight)
    assert weights[0] == 0.0005
    assert weights == sorted(weights, reverse=True)
    assert weights[-1] == pytest.approx(0.0001)


def test_the_weight_stays_where_there_are_no_ngrams():
    search = make_search()
    take(search, make_hypothesis((1, 2, 3), 0.999))
    assert search._fluency.weight == search.config.fluency
