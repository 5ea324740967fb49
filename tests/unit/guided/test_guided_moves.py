"""What can be changed about a hypothesis."""

import numpy as np
import pytest
import torch

from searches import make_hypothesis, make_search, take
from unembed.config import NoiseConfig
from unembed.decoding.guided.filler import MaskFiller, Question
from unembed.decoding.guided.hypothesis import Proposal
from unembed.decoding.guided.moves import (
    Subject,
    Tools,
    add_missing_words,
    ask_what_is_missing,
    deletions,
    draw_exchanges,
    exchange,
    expand,
    follow_gradient,
    insertions,
    judge,
    reorder,
    substitute,
    substitutions,
)
from unembed.model import NoiseSchedule

NOISE = NoiseSchedule(NoiseConfig())


class TestReordering:
    @pytest.mark.parametrize("length", [2, 3, 8, 32, 128])
    def test_two_phrases_change_places_and_nothing_is_lost(self, length):
        ids = tuple(range(length))
        drawn = draw_exchanges(length, 48, np.random.default_rng(0))
        assert 0 < len(drawn) == len(set(drawn)) <= 48
        texts = [exchange(ids, cuts) for cuts in drawn]
        assert ids not in texts
        assert all(sorted(text) == list(ids) for text in texts)
        assert drawn == draw_exchanges(length, 48, np.random.default_rng(0))

    def test_phrases_may_be_neighbours_or_apart_long_or_short(self):
        random = np.random.default_rng(0)
        drawn = {cuts for _ in range(20) for cuts in draw_exchanges(8, 48, random)}
        assert {(0, 1, 1, 2), (0, 1, 7, 8), (0, 4, 4, 8), (1, 4, 5, 7)} <= drawn
        assert draw_exchanges(1, 48, random) == []

    def test_every_other_order_is_proposed_once(self, tools):
        (proposals,) = reorder(tools, [make_subject(10, 11, 12)])
        orders = sorted(texts_of(proposals))
        assert orders == [(10, 12, 11), (11, 10, 12), (11, 12, 10), (12, 10, 11), (12, 11, 10)]


def test_tokens_are_dropped_alone_and_a_few_in_a_row_the_least_worthy_first():
    worth = np.array([-0.1, -3.0, -2.0, -0.5])
    shorter = deletions((1, 2, 3, 4), worth, worth)
    assert shorter[-3:] == [Proposal((1, 2, 4), 2.0), Proposal((1, 4), 5.0), Proposal((1, 3, 4), 3.0)]
    assert len(shorter) == len({proposal.ids for proposal in shorter}) == 4 + 3 + 2
    assert deletions((1,), worth[:1], worth[:1]) == []


def test_substitutions_come_in_the_order_of_their_worth_the_best_last():
    tokens, worth = np.array([[1, 7], [9, 8]]), np.array([[5.0, 0.3], [0.9, -np.inf]])
    assert substitutions((1, 2), tokens, worth, -worth) == [Proposal((7, 2), -0.3), Proposal((1, 9), -0.9)]


def test_a_second_choice_for_a_position_waits_for_the_first_choices_of_others():
    tokens, worth = np.array([[7, 8], [9, 9]]), np.array([[3.0, 2.9], [2.8, -5.0]])
    assert [proposal.ids for proposal in substitutions((1, 2), tokens, worth, worth)][-3:] == [(8, 2), (1, 9), (7, 2)]
    assert [proposal.ids for proposal in insertions((1,), tokens, worth, worth)][-3:] == [(8, 1), (1, 9), (7, 1)]


@pytest.fixture
def tools(model, targets, oracle):
    return Tools(MaskFiller(model, NOISE, targets), oracle, targets.numpy(), longest=12)


def make_subject(*ids, scores=None):
    subject = Subject(0, make_search(), make_hypothesis(ids))
    if scores is not None:
        subject.scores = torch.tensor(scores)
        subject.tokens = torch.arange(subject.scores.shape[1])
        subject.missing = torch.zeros(len(subject.tokens))
    return subject


def texts_of(proposals):
    return [proposal.ids for proposal in proposals]


@torch.no_grad()
def test_each_token_is_judged_with_its_position_masked(model, tools):
    subject = make_subject(10, 11, 12, 13, 14, 15, 16)
    judge(tools, [subject])
    mask = model.vocabulary.mask
    (answer,) = tools.filler.log_probabilities([Question(0, (10, mask, 12, 13, 14, 15, mask))])
    columns = torch.searchsorted(tools.filler.shortlists[0], torch.tensor([11, 16])).tolist()
    expected = [float(answer[0, columns[0]].exp()), float(answer[1, columns[1]].exp())]
    confidence = subject.hypothesis.confidence
    assert [confidence[1], confidence[6]] == pytest.approx(expected, abs=1e-5)
    assert subject.hypothesis.fluency == pytest.approx(float(np.log(confidence).sum()), abs=1e-4)


@torch.no_grad()
def test_questions_are_dated_by_their_mask_rate(model, targets, monkeypatch):
    noise = NoiseSchedule(NoiseConfig(schedule="loglinear"))
    hidden, times = model.hidden, []
    monkeypatch.setattr(model, "hidden", lambda *given: times.append(given[2]) or hidden(*given))
    filler, mask = MaskFiller(model, noise, targets), model.vocabulary.mask
    filler.log_probabilities([Question(0, (10, mask, 12, 13)), Question(1, (mask, mask, 12, 13))])
    assert torch.allclose(torch.cat(times), noise.time_of(torch.tensor([0.25, 0.5])))


def test_the_denoiser_substitutes_first_what_it_finds_most_improbable(tools):
    scores = np.full((2, 20), -9.0, dtype=np.float32)
    scores[0, [3, 4]] = -1.0, -0.5  # 4 is a little likelier than 3
    scores[1, [5, 6]] = -8.0, -0.1  # 6 is much likelier than 5
    (proposals,) = substitute(tools, [make_subject(3, 5, scores=scores)])
    assert proposals[-2:] == [Proposal((4, 5), pytest.approx(0.5)), Proposal((3, 6), pytest.approx(7.9))]


def test_what_the_readout_misses_is_preferred(tools):
    scores = np.full((2, 20), -9.0, dtype=np.float32)
    scores[0, [7, 8]] = -1.0
    subject = make_subject(3, 5, scores=scores)
    subject.missing[7] = 4.0
    assert texts_of(substitute(tools, [subject])[0])[-1] == (7, 5)
    subject.missing[8] = 5.0
    assert texts_of(substitute(tools, [subject])[0])[-1] == (8, 5)


@torch.no_grad()
def test_words_that_are_missed_are_put_where_the_denoiser_likes_them(tools):
    scores = np.full((2, 20), -9.0, dtype=np.float32)
    subject = make_subject(3, 5, scores=scores)
    subject.gap_scores = torch.full((3, 20), -9.0)
    subject.gap_scores[1, 7] = -1.0
    subject.scores[1, 7] = -2.0
    subject.missing[7] = 1000.0
    tools.filler.priors[0] = torch.zeros(20)
    (proposals,) = add_missing_words(tools, [subject])
    assert proposals[-2:] == [Proposal((3, 7), 7.0), Proposal((3, 7, 5), -1.0)]


def test_the_readout_is_asked_about_what_the_hypothesis_does_not_explain(tools, monkeypatch):
    asked = []
    monkeypatch.setattr(tools.filler, "read_words", lambda row, vector: asked.append(vector.numpy()))
    subject = make_subject(3, 5)
    subject.hypothesis.vector = tools.targets[1]
    ask_what_is_missing(tools, [subject])
    assert float(asked[0] @ tools.targets[1]) == pytest.approx(0.0, abs=1e-6)
    assert float(asked[0] @ tools.targets[0]) > 0.0


def test_a_token_that_is_not_scored_has_the_least_probability(tools):
    subject = make_subject(3, 99, scores=np.full((2, 20), -2.0, dtype=np.float32))
    assert subject.own.tolist() == [-2.0, -15.0]


def test_the_gradient_substitutes_first_what_gains_most_and_likelihood_decides_between_equals(tools, monkeypatch):
    tokens = np.array([[7, 8], [10, 9]])
    gains = np.array([[0.5, -0.5], [0.1, 0.1]])
    monkeypatch.setattr(tools.oracle, "substitutions", lambda *asked: [(tokens, gains)])
    scores = np.full((2, 20), -3.0, dtype=np.float32)
    scores[1, 10] = -1.0
    subject = make_subject(3, 5, scores=scores)
    assert texts_of(follow_gradient(tools, [subject])[0]) == [(8, 5), (3, 9), (3, 10), (7, 5)]
    assert subject.search.texts_embedded == 1


def test_a_gradient_that_the_encoder_does_not_have_is_not_counted(tools):
    subject = make_subject(3, 5)
    assert follow_gradient(tools, [subject]) == [[]]
    assert subject.search.texts_embedded == 0


@pytest.mark.parametrize("resize", [True, False])
@torch.no_grad()
def test_gaps_are_opened_everywhere_unless_the_length_is_known(model, targets, oracle, resize):
    tools = Tools(MaskFiller(model, NOISE, targets), oracle, targets.numpy(), longest=12, resize=resize, gradient=False)
    search = make_search(target=tools.targets[0])
    parent = make_hypothesis((10, 11, 12, 13, 14, 15, 16), vector=np.zeros(16))
    take(search, parent)
    expand(tools, {0: search})
    lengths = {len(proposal.ids) for proposals in parent.proposals.values() for proposal in proposals}
    if not resize:
        assert lengths == {7}
        return
    assert {6, 7, 8} <= lengths
    filled = [
        [position for position, token in enumerate(ids) if token not in parent.ids]
        for ids, _ in parent.proposals["insert"]
    ]
    assert {gap for positions in filled for gap in positions} == set(range(8))
    assert max(map(len, filled)) == 1
