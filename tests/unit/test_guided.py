"""Guided decoding, with an encoder without weights and a denoiser that knows nothing: the search must do it all."""

import time

import numpy as np
import pytest
import torch

from unembed.canvas import CanvasVocabulary
from unembed.config import DecodingConfig, GuidedConfig, NoiseConfig
from unembed.decoding import GuidedRounds, TextOracle, decode
from unembed.decoding.guided import Hypothesis
from unembed.decoding.guided.filler import MaskFiller, Question
from unembed.decoding.guided.moves import (
    PRIORS,
    Subject,
    Tools,
    deletions,
    expand,
    follow_gradient,
    judge,
    merged,
    reorderings,
    substitute,
    substitutions,
)
from unembed.decoding.guided.search import Search
from unembed.model import NoiseSchedule

NOISE = NoiseSchedule(NoiseConfig())
TEXTS = ["the cat sleeps on the mat.", "a dog", "two birds sing in the garden.", "rain"]


@pytest.fixture
def oracle(fake_encoder):
    return TextOracle(fake_encoder, fake_encoder.tokenizer, CanvasVocabulary.of(fake_encoder.tokenizer), 12)


@pytest.fixture
def model(tiny_checkpoint):
    from unembed.checkpoint import load_checkpoint

    return load_checkpoint(tiny_checkpoint).model


@pytest.fixture
def targets(fake_encoder):
    return torch.from_numpy(fake_encoder.encode(TEXTS))


def make_options(seed=0, **guided):
    return DecodingConfig(strategy="guided", seed=seed, guided=GuidedConfig(**guided))


def search(model, targets, oracle, *, lengths=None, **options):
    return list(decode(model, NOISE, targets, make_options(**options), oracle=oracle, lengths=lengths))


def take_rounds(model, targets, oracle, **options):
    """Return a search that goes on when it is asked for the next round."""
    return GuidedRounds(model, NOISE, targets, make_options(**options), oracle=oracle)


def make_hypothesis(ids, cosine=0.5, fluency=-1.0, **known):
    return Hypothesis(tuple(ids), "", np.zeros(16), cosine, fluency, **known)


def make_search(seed=0, **config):
    return Search(GuidedConfig(**config), np.random.default_rng(seed), PRIORS)


def embed_ids(oracle, ids):
    return oracle.embed(oracle.write(ids))


def finals(steps):
    return {int(step.rows[0]): step for step in steps if step.final.any()}


def test_it_ends_every_vector_once_with_no_mask_and_no_special_token(model, targets, oracle):
    steps = search(model, targets, oracle, rounds=3)
    ended = [int(row) for step in steps for row in step.rows[step.final]]
    assert sorted(ended) == [0, 1, 2, 3]
    for step in finals(steps).values():
        ids = step.canvas[0].tolist()
        assert ids
        assert model.vocabulary.mask not in ids
        assert not set(model.vocabulary.special) & set(ids)
        assert len(step.confidence[0]) == len(ids)
        assert ((step.confidence > 0) & (step.confidence <= 1)).all()


def test_the_score_is_the_cosine_of_the_texts_vector_and_only_rises(model, targets, oracle, fake_encoder):
    steps = [step for step in search(model, targets, oracle, rounds=12) if step.encoder_calls.sum()]
    for row in range(4):
        mine = [step for step in steps if int(step.rows[0]) == row]
        scores = [float(step.score) for step in mine]
        assert scores == sorted(scores)
        assert scores[-1] > scores[0]
        text = fake_encoder.tokenizer.decode(mine[-1].canvas[0].tolist())
        assert float(fake_encoder.encode([text])[0] @ targets[row].numpy()) == pytest.approx(scores[-1], abs=1e-5)
        calls = [int(step.encoder_calls) for step in mine]
        assert calls == sorted(calls)


def test_every_text_that_is_embedded_is_counted(model, targets, oracle, fake_encoder):
    before = len(fake_encoder.seen)
    steps = search(model, targets, oracle, rounds=5, gradient=False)
    assert sum(int(step.encoder_calls) for step in finals(steps).values()) == len(fake_encoder.seen) - before


def test_no_text_is_embedded_twice_for_a_vector(model, targets, oracle, fake_encoder):
    before = len(fake_encoder.seen)
    search(model, targets[:1], oracle, rounds=10)
    asked = fake_encoder.seen[before:]
    assert len(asked) == len(set(asked))


class ClearSighted(TextOracle):
    """Knows what every substitution gains, as an encoder's gradient does roughly."""

    def substitutions(self, hypotheses, targets, top):
        tokens = [i for i in range(self.vocabulary.size) if i not in self.vocabulary.special]
        estimates = []
        for ids, target in zip(hypotheses, targets, strict=True):
            changed = [(*ids[:index], token, *ids[index + 1 :]) for index in range(len(ids)) for token in tokens]
            gains = (embed_ids(self, changed) @ target).reshape(len(ids), -1)
            best = np.argsort(-gains, axis=1)[:, :top]
            estimates.append((np.array(tokens)[best], np.take_along_axis(gains, best, 1)))
        return estimates


@pytest.mark.parametrize(("row", "length"), [(1, 2), (3, 1)])
def test_with_the_encoders_gradient_it_finds_the_text_itself(model, targets, oracle, row, length):
    oracle = ClearSighted(oracle.encoder, oracle.tokenizer, oracle.vocabulary, 12)
    steps = search(model, targets[row : row + 1], oracle, lengths=torch.tensor([length]), rounds=12)
    (step,) = finals(steps).values()
    assert oracle.tokenizer.decode(step.canvas[0].tolist()) == TEXTS[row]
    assert float(step.score) == pytest.approx(1.0, abs=1e-4)


def test_it_does_not_depend_on_the_batch_and_repeats_itself(model, targets, oracle):
    def texts(steps):
        return [finals(steps)[row].canvas.tolist() for row in sorted(finals(steps))]

    together = texts(search(model, targets, oracle, rounds=6))
    assert texts(search(model, targets, oracle, rounds=6)) == together
    assert [texts(search(model, targets[row : row + 1], oracle, rounds=6))[0] for row in range(4)] == together


def test_rounds_patience_target_and_time_each_end_it(model, targets, oracle):
    def rounds(**limits):
        steps = search(model, targets[:1], oracle, **({"rounds": 9, "patience": 99, "proposals": 8} | limits))
        return sum(bool(step.encoder_calls.sum()) for step in steps) - 1

    assert rounds() == 9
    assert rounds(rounds=0) == 0
    assert rounds(target_cosine=0.01) == 0
    assert rounds(seconds=1e-9) == 0
    assert rounds(rounds=200, patience=2) < 200


def test_a_time_budget_is_kept(model, targets, oracle):
    begun = time.monotonic()
    search(model, targets[:1], oracle, rounds=100_000, patience=100_000, seconds=1.0)
    assert time.monotonic() - begun < 5.0


def test_a_given_length_is_kept(model, targets, oracle):
    lengths = torch.tensor([7, 2, 7, 1])
    steps = search(model, targets, oracle, lengths=lengths, rounds=8)
    assert [finals(steps)[row].canvas.shape[1] for row in range(4)] == lengths.tolist()


def test_more_vectors_than_are_searched_together(model, fake_encoder, oracle):
    targets = torch.from_numpy(fake_encoder.encode([f"the cat {word}" for word in "abcdefghijklmnopqrs"]))
    assert sorted(finals(search(model, targets, oracle, rounds=1))) == list(range(19))


class TestRounds:
    """A search that its caller drives."""

    def test_its_steps_are_those_of_decode(self, model, targets, oracle):
        rounds = take_rounds(model, targets, oracle, rounds=3)
        steps = [step for round_ in rounds for step in round_]
        assert [step.canvas.tolist() for step in steps] == [
            step.canvas.tolist() for step in search(model, targets, oracle, rounds=3)
        ]

    def test_searches_that_take_turns_do_not_disturb_one_another(self, model, targets, oracle):
        alone = finals(search(model, targets[:1], oracle, rounds=4))[0]
        first, second = (take_rounds(model, targets[row : row + 1], oracle, rounds=4) for row in (0, 1))
        for steps in first:
            last = steps
            next(second, None)
        assert last[0].final.all()
        assert torch.equal(last[0].canvas, alone.canvas)
        assert int(last[0].encoder_calls) == int(alone.encoder_calls)

    def test_a_search_that_is_stopped_gives_its_best_text_in_the_next_round(self, model, targets, oracle, fake_encoder):
        rounds = take_rounds(model, targets[:1], oracle, rounds=50, patience=50)
        searched = (steps[0] for steps in rounds if steps[0].encoder_calls.sum())
        shown = [next(searched) for _ in range(3)][-1]
        asked = len(fake_encoder.seen)
        rounds.stop()
        ((last,),) = list(rounds)
        assert last.final.all()
        assert torch.equal(last.canvas, shown.canvas)
        assert float(last.score) == float(shown.score)
        assert len(fake_encoder.seen) == asked, "texts were embedded although the search was stopped"

    def test_some_vectors_can_be_stopped_while_the_others_go_on(self, model, targets, oracle):
        rounds = take_rounds(model, targets, oracle, rounds=3, patience=50)
        rounds.stop([1, 3])
        later = [steps for steps in rounds if steps[0].encoder_calls.sum()]
        assert [int(step.rows[0]) for step in later[0] if step.final.all()] == [1, 3]
        assert [int(step.rows[0]) for step in later[1]] == [0, 2]
        assert [int(step.rows[0]) for step in later[-1] if step.final.all()] == [0, 2]

    def test_only_its_own_work_counts_as_its_time(self, model, targets, oracle, monkeypatch):
        class Clock:
            now = 0.0

            def monotonic(self):
                return self.now

        clock = Clock()
        monkeypatch.setattr("unembed.decoding.guided.rounds.time", clock)
        count = 0
        for steps in take_rounds(model, targets[:1], oracle, rounds=3, patience=9, seconds=5.0):
            clock.now += 100.0  # the caller does something else
            count += bool(steps[0].encoder_calls.sum())
        assert count == 3 + 1

    def test_gradients_are_not_switched_off_for_its_caller(self, model, targets, oracle):
        for _ in take_rounds(model, targets[:1], oracle, rounds=1):
            assert torch.is_grad_enabled()


class TestSearch:
    def start(self, **config):
        search = make_search(**config)
        parent = make_hypothesis((1, 2, 3))
        search.add([parent])
        return search, parent

    def test_moves_that_help_are_tried_more(self):
        search, parent = self.start(proposals=8, beam=1)
        for number in range(40):
            parent.proposals["delete"] = [(number, index) for index in range(50)]
            parent.proposals["insert"] = [(number, index, 0, 0) for index in range(50)]
            search.add(
                make_hypothesis(
                    attempt.ids, 0.4 if attempt.move == "delete" else 0.50002, parent=parent, move=attempt.move
                )
                for attempt in search.choose()
            )
            search.beam = [parent]
        parent.proposals = {
            "delete": [(0, index) for index in range(50)],
            "insert": [(1, index) for index in range(50)],
        }
        moves = [attempt.move for attempt in search.choose()]
        assert moves.count("insert") > moves.count("delete")

    def test_no_proposal_is_lost_when_it_is_not_chosen(self):
        search, parent = self.start(proposals=2, beam=1)
        wanted = {move: [(move, index) for index in range(3)] for move in ("delete", "insert", "span", "gradient")}
        parent.proposals = {move: list(texts) for move, texts in wanted.items()}
        chosen = []
        while attempts := search.choose():
            chosen += [(attempt.move, attempt.ids) for attempt in attempts]
        assert sorted(chosen) == sorted((move, text) for move, texts in wanted.items() for text in texts)

    def test_the_best_by_cosine_and_another_length_stay_in_the_beam(self):
        search, _ = self.start(beam=3, fluency=1.0)
        nearest = make_hypothesis((4, 5, 6), 0.9, -50.0)
        fluent = [make_hypothesis((7, 8, number), 0.5, -0.1) for number in range(5)]
        longer = make_hypothesis((1, 2, 3, 4), 0.1, -60.0)
        search.add([nearest, *fluent, longer])
        assert nearest in search.beam
        assert longer in search.beam
        assert len(search.beam) == 3

    @pytest.mark.parametrize(("weight", "kept"), [(0.0, "nearer"), (0.02, "fluent")])
    def test_of_the_others_those_stay_that_are_near_and_fluent(self, weight, kept):
        search = make_search(beam=2, fluency=weight)
        others = {"nearer": make_hypothesis((4, 5, 6), 0.80, -10.0), "fluent": make_hypothesis((7, 8, 9), 0.75, -1.0)}
        best = make_hypothesis((1, 2, 3), 0.9, -5.0)
        search.add([best, *others.values()])
        assert search.beam == [best, others[kept]]

    def test_what_improved_on_a_hypothesis_is_known_until_the_next_round(self):
        search, parent = self.start(beam=1)
        better, worse = (make_hypothesis((1, 2, n), n / 10, parent=parent, move="span") for n in (6, 4))
        search.add([better, worse])
        assert search.beam == [better]
        search.beam = [parent]
        search.add([better, worse])
        search.beam = [parent]
        search.add([worse])
        assert parent.improvements == []

    def test_without_any_proposal_it_is_finished(self):
        search, _ = self.start()
        assert not search.finished
        assert search.choose() == []
        search.add([])
        assert search.finished


def test_hypotheses_know_their_text_their_vector_and_where_they_come_from(model, targets, oracle, monkeypatch):
    added = []
    add = Search.add

    def watch(self, hypotheses):
        added.extend(hypotheses)
        add(self, added[-len(hypotheses) :] if hypotheses else [])

    monkeypatch.setattr(Search, "add", watch)
    search(model, targets[:1], oracle, rounds=2)
    assert {hypothesis.move for hypothesis in added} > {"", "span"}
    for hypothesis in added:
        assert hypothesis.text == oracle.tokenizer.decode(list(hypothesis.ids))
        assert np.allclose(hypothesis.vector, oracle.embed([hypothesis.text])[0], atol=1e-6)
        assert hypothesis.cosine == pytest.approx(float(hypothesis.vector @ targets[0].numpy()), abs=1e-6)
        assert (hypothesis.parent is None) == (hypothesis.move == "")


@pytest.mark.parametrize("length", [2, 3, 8, 32, 128])
def test_phrases_are_moved_and_no_more_often_than_the_limit_whatever_the_length(length):
    ids = tuple(range(length))
    moved = reorderings(ids, np.random.default_rng(0))
    assert 0 < len(moved) <= 200
    assert len(moved) == len(set(moved))
    assert ids not in moved
    assert all(sorted(text) == list(ids) for text in moved)
    assert moved == reorderings(ids, np.random.default_rng(0))


def test_any_phrase_of_a_short_text_can_change_places_with_its_neighbour():
    moved = reorderings(tuple(range(8)), np.random.default_rng(0))
    assert (0, 4, 5, 6, 1, 2, 3, 7) in moved
    assert {text.index(0) for text in moved} == set(range(8))
    assert reorderings((5,), np.random.default_rng(0)) == []


def test_single_tokens_are_moved_first():
    def moves_one_token(text):
        return any(
            text[:index] + text[index + 1 :] == tuple(token for token in range(32) if token != text[index])
            for index in range(32)
        )

    moved = reorderings(tuple(range(32)), np.random.default_rng(0))
    assert np.mean([moves_one_token(text) for text in moved[-50:]]) == 1.0
    assert np.mean([moves_one_token(text) for text in moved]) < 1.0


def test_tokens_are_dropped_alone_and_a_few_in_a_row_the_doubtful_ones_first():
    shorter = deletions(make_hypothesis((1, 2, 3, 4), confidence=[0.9, 0.1, 0.2, 0.8]))
    assert shorter[-3:] == [(1, 2, 4), (1, 4), (1, 3, 4)]
    assert len(shorter) == len(set(shorter)) == 4 + 3 + 2
    assert deletions(make_hypothesis((1,), confidence=[0.1])) == []


def test_substitutions_come_in_the_order_of_their_worth_the_best_last():
    tokens, worth = np.array([[7, 1], [8, 9]]), np.array([[0.3, 5.0], [-np.inf, 0.9]])
    assert substitutions((1, 2), tokens, worth) == [(7, 2), (1, 9)]


@pytest.fixture
def tools(model, targets, oracle):
    return Tools(MaskFiller(model, NOISE, targets), oracle, targets.numpy(), longest=12)


def make_subject(*ids, scores=None):
    subject = Subject(0, make_search(), make_hypothesis(ids))
    if scores is not None:
        subject.scores = torch.tensor(scores)
    return subject


@torch.no_grad()
def test_each_token_is_judged_with_its_position_masked(model, tools):
    subject = make_subject(10, 11, 12, 13, 14, 15, 16)
    judge(tools, [subject])
    mask = model.vocabulary.mask
    (answer,) = tools.filler.log_probabilities([Question(0, (10, mask, 12, 13, 14, 15, mask))])
    expected = [float(answer[0, 11].exp()), float(answer[1, 16].exp())]
    confidence = subject.hypothesis.confidence
    assert [confidence[1], confidence[6]] == pytest.approx(expected, abs=1e-5)
    assert subject.hypothesis.fluency == pytest.approx(float(np.log(confidence).mean()), abs=1e-5)


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
    assert proposals[-2:] == [(4, 5), (3, 6)]


def test_the_gradient_substitutes_first_what_gains_most_and_likelihood_decides_between_equals(tools, monkeypatch):
    tokens = np.array([[7, 8], [9, 10]])
    gains = np.array([[0.5, -0.5], [0.1, 0.1]])
    monkeypatch.setattr(tools.oracle, "substitutions", lambda *asked: [(tokens, gains)])
    scores = np.full((2, 20), -3.0, dtype=np.float32)
    scores[1, 10] = -1.0
    subject = make_subject(3, 5, scores=scores)
    assert follow_gradient(tools, [subject]) == [[(8, 5), (3, 9), (3, 10), (7, 5)]]
    assert subject.search.encoder_calls == 1


def test_a_gradient_that_the_encoder_does_not_have_is_not_counted(tools):
    subject = make_subject(3, 5)
    assert follow_gradient(tools, [subject]) == [[]]
    assert subject.search.encoder_calls == 0


@pytest.mark.parametrize("resize", [True, False])
@torch.no_grad()
def test_gaps_are_opened_everywhere_unless_the_length_is_known(model, targets, oracle, resize):
    tools = Tools(MaskFiller(model, NOISE, targets), oracle, targets.numpy(), longest=12, resize=resize, gradient=False)
    search, parent = make_search(), make_hypothesis((10, 11, 12, 13, 14, 15, 16))
    search.add([parent])
    expand(tools, {0: search})
    lengths = {len(ids) for proposals in parent.proposals.values() for ids in proposals}
    if not resize:
        assert lengths == {7}
        return
    assert {6, 7, 8} <= lengths
    filled = [
        [position for position, token in enumerate(ids) if token not in parent.ids]
        for ids in parent.proposals["insert"]
    ]
    assert {gap for positions in filled for gap in positions} == set(range(8))
    assert max(map(len, filled)) == 1


def test_changes_that_helped_alone_are_tried_together():
    children = [
        make_hypothesis((9, 2, 3, 4), 0.9),
        make_hypothesis((1, 2, 8, 4), 0.8),
        make_hypothesis((7, 2, 3, 4), 0.7),  # a better change has this position
        make_hypothesis((1, 6, 3, 4), 0.6),
        make_hypothesis((1, 2, 3), 0.95),  # another length
    ]
    together = merged(make_hypothesis((1, 2, 3, 4), improvements=children))
    assert together == [(9, 6, 3, 4), (9, 2, 8, 4), (9, 6, 8, 4)]
    assert merged(make_hypothesis((1, 2, 3, 4), improvements=children[:1])) == []


class TestTextOracle:
    def test_a_hypothesis_is_what_its_text_reads_as(self, oracle):
        tokenizer = oracle.tokenizer
        split = tuple(tokenizer.token_to_id(token) for token in ("c", "##a", "##t"))
        whole = (tokenizer.token_to_id("cat"),)
        assert oracle.settle([split, whole]) == [whole, whole]

    def test_what_does_not_fit_the_canvas_or_says_nothing_is_none(self, oracle):
        cat = oracle.tokenizer.token_to_id("cat")
        assert oracle.settle([(cat,) * 13, (cat,) * 12, ()]) == [None, (cat,) * 12, None]

    def test_an_encoder_without_gradient_proposes_nothing(self, oracle):
        assert oracle.substitutions([(5, 6)], np.ones((1, 16)), 3) == [None]
