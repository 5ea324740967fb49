"""Guided decoding, with an encoder without weights and a denoiser that knows nothing: the search must do it all."""

import itertools
import time

import numpy as np
import pytest
import torch

from unembed.canvas import CanvasVocabulary
from unembed.config import DecodingConfig, GuidedConfig, NoiseConfig
from unembed.decoding import GuidedRounds, TextOracle, decode
from unembed.decoding.guided import Hypothesis
from unembed.decoding.guided.composition import compose
from unembed.decoding.guided.edits import Change, SlotBook, apply, compare, locate
from unembed.decoding.guided.filler import MaskFiller, Question
from unembed.decoding.guided.hypothesis import Attempt, Proposal
from unembed.decoding.guided.moves import (
    PRIORS,
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
    seams_after,
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
    ids = tuple(ids)
    return Hypothesis(ids, "", **{"vector": np.zeros(16), "cosine": cosine, "fluency": fluency, "slots": ids} | known)


def make_search(seed=0, target=(1.0, 0.0), **config):
    return Search(GuidedConfig(**config), np.random.default_rng(seed), PRIORS, np.array(target))


def take(search, *hypotheses, parent=None, move="span"):
    """Give a search hypotheses that were embedded, and let it select."""
    attempts = [Attempt(each.ids, each.fluency, parent, move if parent else "") for each in hypotheses]
    search.add(list(zip(attempts, hypotheses, strict=True)))
    for each in search.contenders():
        each.confidence = [0.5] * len(each.ids)
    search.select()


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
        parent = make_hypothesis((1, 2, 3), vector=np.array([0.5, 0.8]))
        take(search, parent)
        return search, parent

    def test_moves_that_help_are_tried_more(self):
        search, parent = self.start(proposals=8, beam=1, combinations=0)
        for number in range(40):
            parent.proposals = {
                "delete": [Proposal((number, index)) for index in range(50)],
                "insert": [Proposal((number, index, 0, 0)) for index in range(50)],
            }
            attempts = search.choose()
            cosines = [0.4 if attempt.move == "delete" else 0.5 + 1e-4 for attempt in attempts]
            children = [
                make_hypothesis(attempt.ids, cosine, vector=np.array([cosine, 0.8]))
                for attempt, cosine in zip(attempts, cosines, strict=True)
            ]
            search.add(list(zip(attempts, children, strict=True)))
        parent.proposals = {
            "delete": [Proposal((0, index)) for index in range(50, 99)],
            "insert": [Proposal((1, index)) for index in range(50, 99)],
        }
        moves = [attempt.move for attempt in search.choose()]
        assert moves.count("insert") > 2 * moves.count("delete")

    def test_a_move_that_no_longer_helps_is_soon_tried_less(self):
        search, parent = self.start(combinations=0)

        def share_of_gradient_after(rounds, cosine):
            for _ in range(rounds):
                child = make_hypothesis((1, 2, 9), cosine, vector=np.array([cosine, 0.8]))
                search.add([(Attempt(child.ids, -1.0, parent, "gradient"), child)] * 9)
            return search.chances()["gradient"] / sum(search.chances().values())

        helped = share_of_gradient_after(20, 0.6)
        assert share_of_gradient_after(20, 0.4) < helped / 3

    def test_no_proposal_is_lost_when_it_is_not_chosen(self):
        search, parent = self.start(proposals=2, beam=1)
        moves = ("delete", "insert", "span", "gradient")
        wanted = {
            move: [Proposal((number, index, 7), index) for index in range(3)] for number, move in enumerate(moves)
        }
        parent.proposals = {move: list(proposals) for move, proposals in wanted.items()}
        chosen = []
        while attempts := search.choose():
            chosen += [(attempt.move, Proposal(attempt.ids, attempt.fluency - parent.fluency)) for attempt in attempts]
        assert sorted(chosen) == sorted((move, proposal) for move, each in wanted.items() for proposal in each)

    def test_the_beam_holds_the_near_and_fluent_ones(self):
        nearer, fluent = make_hypothesis((4, 5, 6), 0.80, -10.0), make_hypothesis((7, 8, 9), 0.75, -1.0)
        for weight, best in ((0.0, nearer), (0.02, fluent)):
            search = make_search(beam=1, fluency=weight)
            take(search, nearer, fluent)
            assert search.beam == [best]
            assert search.best is best

    def test_nothing_beats_a_text_that_reaches_the_target(self):
        search = make_search(fluency=0.1)
        take(search, make_hypothesis((1, 2), 0.99, -1.0), make_hypothesis((3, 4), 0.99995, -20.0))
        assert search.best.ids == (3, 4)
        assert search.finished

    def test_changes_that_are_known_from_a_relative_are_not_tried_again_alone(self):
        search, parent = self.start(beam=1)
        child = make_hypothesis((1, 2, 9), 0.7, vector=np.array([0.7, 0.7]))
        worse = make_hypothesis((5, 2, 3), 0.3, vector=np.array([0.3, 0.9]))
        take(search, child, worse, parent=parent)
        assert search.beam == [child]
        child.proposals = {"span": [Proposal((5, 2, 9)), Proposal((6, 2, 9))]}
        assert [attempt.ids for attempt in search.choose() if attempt.move == "span"] == [(6, 2, 9)]

    def test_what_is_known_from_a_far_relative_is_tried_again(self):
        search, parent = self.start(beam=1, combinations=0)
        worse = make_hypothesis((5, 2, 3), 0.3, vector=np.array([0.3, 0.9]))
        child = make_hypothesis((1, 2, 7, 8, 9, 10), 0.7, vector=np.array([0.7, 0.7]))
        take(search, child, worse, parent=parent)
        child.proposals = {"span": [Proposal((5, 2, 7, 8, 9, 10))]}
        assert [attempt.ids for attempt in search.choose()] == [(5, 2, 7, 8, 9, 10)]

    def test_changes_that_each_helped_are_tried_together(self):
        search, parent = self.start(beam=1)
        first = make_hypothesis((9, 2, 3), 0.6, vector=np.array([0.55, 0.7]))
        second = make_hypothesis((1, 2, 8), 0.6, vector=np.array([0.55, 0.7]))
        take(search, first, second, parent=parent)
        together = next(attempt for attempt in search.choose() if attempt.ids == (9, 2, 8))
        assert together.move == "compose"
        assert together.expected == pytest.approx(0.6 / np.hypot(0.6, 0.6))

    def test_a_search_that_is_stuck_starts_again_from_another_first_hypothesis(self):
        search = make_search(patience=99)
        first, second = make_hypothesis((1, 2, 3), 0.8), make_hypothesis((4, 5), 0.3)
        take(search, first, second)
        child = make_hypothesis((1, 2, 9), 0.9, parent=first)
        take(search, child, parent=first)
        for _ in range(6):
            assert search.beam[0] is child
            take(search)
        assert search.beam == [second]
        assert search.best is child
        take(search, make_hypothesis((4, 6), 0.4), parent=second)
        assert search.beam[0].ids == (4, 6)
        assert search.best is child

    def test_a_search_that_is_stuck_looks_further(self):
        search = make_search(patience=99)
        take(search, make_hypothesis((1, 2, 3), 0.8), make_hypothesis((4, 5), 0.3))
        assert len(search.beam) == 1
        for _ in range(4):
            take(search)
        assert len(search.beam) == 2

    def test_without_any_proposal_it_is_finished(self):
        search, _ = self.start()
        assert not search.finished
        assert search.choose() == []
        assert search.finished


class TestComposition:
    vector, target = np.array([0.6, 0.8, 0.0]), np.array([1.0, 0.0, 0.0])

    def compose(self, differences, cells, bonus=None):
        bonus = np.zeros(len(differences)) if bonus is None else np.array(bonus)
        return compose(self.vector, self.target, np.array(differences), np.array(cells, dtype=bool), bonus)

    def test_edits_are_combined_that_only_pay_together(self):
        differences = [[0.0, -0.3, 0.9], [0.0, -0.3, -0.9], [0.0, -0.2, 0.0]]
        alone = [combination for combination in self.compose(differences, np.eye(3)) if len(combination.edits) == 1]
        assert max(combination.cosine for combination in alone if combination.edits != (2,)) < 0.6
        best = self.compose(differences, np.eye(3))[0]
        assert best.edits == (0, 1, 2)
        assert best.cosine == pytest.approx(1.0)

    def test_edits_of_the_same_part_exclude_each_other(self):
        combinations = self.compose([[0.1, 0, 0], [0.2, 0, 0], [0.3, 0, 0]], [[1, 0], [1, 1], [0, 1]])
        assert {combination.edits for combination in combinations} == {(0,), (1,), (2,), (0, 2)}

    def test_each_combination_comes_once_the_best_first(self):
        random = np.random.default_rng(0)
        combinations = self.compose(0.1 * random.normal(size=(7, 3)), np.eye(7))
        assert len({combination.edits for combination in combinations}) == len(combinations) > 60
        scores = [combination.score for combination in combinations]
        assert scores == sorted(scores, reverse=True)

    def test_a_bonus_counts_beside_the_cosine(self):
        differences = [[0.1, 0.0, 0.0], [0.1, 0.0, 0.0]]
        assert self.compose(differences, [[1], [1]], bonus=[0.0, 0.5])[0].edits == (1,)


class TestEdits:
    def test_a_change_is_as_small_as_can_be(self):
        assert compare((1, 2, 3, 4), (1, 2, 9, 4)) == [Change(2, 3, (9,))]
        assert compare((1, 2, 3, 4), (1, 3, 4)) == [Change(1, 2, ())]
        assert compare((1, 2, 3), (1, 2, 9, 3)) == [Change(2, 2, (9,))]
        assert compare((1, 2, 3), (1, 2, 3)) == []

    @pytest.mark.parametrize("after", [(5, 2, 3, 4, 1), (4, 2, 3, 1), (7, 8), (1, 1, 2, 2), (9, 1, 2, 3, 4, 9)])
    def test_changes_make_the_one_text_of_the_other(self, after):
        before = (1, 2, 3, 4)
        assert apply(before, compare(before, after)) == after

    def test_an_edit_of_one_text_fits_its_relatives(self):
        book = SlotBook()
        parent, child = (1, 2, 3), (1, 8, 8, 3)
        slots = book.first(parent)
        related = book.after(slots, compare(parent, child))
        edit = book.edit(slots, [Change(2, 3, (9,))])
        positions = {slot: position for position, slot in enumerate(related)}
        assert apply(child, locate(edit, positions)) == (1, 8, 8, 9)
        gone = book.edit(slots, [Change(1, 2, (7,))])
        assert locate(gone, positions) is None

    def test_insertions_stay_behind_the_token_that_they_followed(self):
        book = SlotBook()
        slots = book.first((1, 2, 3))
        shorter = {slot: position for position, slot in enumerate(book.after(slots, [Change(0, 1, ())]))}
        assert apply((2, 3), locate(book.edit(slots, [Change(2, 2, (9,))]), shorter)) == (2, 9, 3)
        assert apply((2, 3), locate(book.edit(slots, [Change(0, 0, (9,))]), shorter)) == (9, 2, 3)

    def test_the_same_edit_gives_the_same_slots(self):
        book = SlotBook()
        slots = book.first((1, 2, 3))
        one, other = (book.after(slots, [Change(1, 2, (token,))]) for token in (7, 8))
        assert one == book.after(slots, [Change(1, 2, (7,))])
        assert (one[0], one[2]) == (other[0], other[2])
        assert one[1] != other[1]


def test_hypotheses_know_their_text_their_vector_and_where_they_come_from(model, targets, oracle, monkeypatch):
    added = []
    add = Search.add

    def watch(self, attempts):
        added.extend(hypothesis for _, hypothesis in attempts)
        add(self, attempts)

    monkeypatch.setattr(Search, "add", watch)
    search(model, targets[:1], oracle, rounds=2)
    assert {hypothesis.move for hypothesis in added} > {"", "insert"}
    for hypothesis in added:
        assert hypothesis.text == oracle.tokenizer.decode(list(hypothesis.ids))
        assert np.allclose(hypothesis.vector, oracle.embed([hypothesis.text])[0], atol=1e-6)
        assert hypothesis.cosine == pytest.approx(float(hypothesis.vector @ targets[0].numpy()), abs=1e-6)
        assert (hypothesis.parent is None) == (hypothesis.move == "")


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

    def test_the_seams_are_the_tokens_with_a_new_left_neighbour(self):
        ids = tuple(range(9))
        before = dict(itertools.pairwise((-1, *ids)))
        for cuts in draw_exchanges(9, 48, np.random.default_rng(1)):
            text = exchange(ids, cuts)
            changed = [
                at for at, (left, right) in enumerate(itertools.pairwise((-1, *text))) if before.get(left) != right
            ]
            assert changed == seams_after(cuts, 9)

    @torch.no_grad()
    def test_the_order_that_the_denoiser_likes_is_tried_first(self, tools, monkeypatch):
        def prefer_ascending(questions):
            answers = []
            for question in questions:
                scores = torch.full((question.canvas.count(tools.filler.mask), 20), -9.0)
                asked = [at for at, token in enumerate(question.canvas) if token == tools.filler.mask]
                for row, at in enumerate(asked):
                    scores[row, 10 + at] = 0.0
                answers.append(scores)
            return answers

        monkeypatch.setattr(tools.filler, "log_probabilities", prefer_ascending)
        subject = make_subject(12, 11, 10, scores=np.full((3, 20), -9.0, dtype=np.float32))
        (proposals,) = reorder(tools, [subject])
        assert proposals[-1].ids == (10, 11, 12)


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


class Rounded:
    """The fake encoder, with vectors that are a little wrong."""

    def __init__(self, exact):
        self.exact, self.description, self.tokenizer, self.seen = exact, exact.description, exact.tokenizer, []

    def encode(self, sentences, **_):
        self.seen += sentences
        noise = np.random.default_rng(0).normal(size=(len(sentences), 16))
        return (self.exact.encode(sentences) + 1e-3 * noise).astype(np.float32)


class TestTextOracle:
    def test_a_quicker_encoder_searches_and_the_given_one_has_the_last_word(
        self, model, targets, fake_encoder, monkeypatch
    ):
        quick = Rounded(fake_encoder)
        monkeypatch.setattr(fake_encoder, "quicker", lambda: quick, raising=False)
        oracle = TextOracle(fake_encoder, fake_encoder.tokenizer, CanvasVocabulary.of(fake_encoder.tokenizer), 12)
        (last,) = finals(search(model, targets[:1], oracle, rounds=4)).values()
        text = fake_encoder.tokenizer.decode(last.canvas[0].tolist())
        assert text in quick.seen
        assert float(last.score) == pytest.approx(float(fake_encoder.encode([text])[0] @ targets[0].numpy()), abs=1e-6)

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
