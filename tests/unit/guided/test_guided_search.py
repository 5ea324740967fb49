"""What a guided search decides: which texts to change next, and what to try."""

import numpy as np
import pytest

from searches import make_hypothesis, make_search, take
from unembed.decoding.guided.hypothesis import Attempt, Proposal


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
        take(search, make_hypothesis((1, 2), 0.99, -1.0), make_hypothesis((3, 4), 0.99999, -20.0))
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
        for number in range(12):
            assert search.beam[0].ids[:2] == (1, 2)
            # A gain that is too small to be progress does not keep it from another start.
            child = make_hypothesis((1, 2, 10 + number), 0.9 + 1e-4 * number, parent=first)
            take(search, child, parent=first)
        assert search.beam == [second]
        assert search.best is child
        take(search, make_hypothesis((4, 6), 0.4), parent=second)
        assert search.beam[0].ids == (4, 6)
        assert search.best is child

    def test_what_resembles_a_change_that_helped_is_tried_first(self):
        search, parent = self.start(proposals=2, combinations=0)
        better = make_hypothesis((9, 1, 2, 3), 0.4, vector=np.array([0.7, 0.7]))
        worse = make_hypothesis((8, 1, 2, 3), 0.3, vector=np.array([0.3, 0.9]))
        search.add([(Attempt(each.ids, -1.0, parent, "insert"), each) for each in (better, worse)])
        parent.proposals = {"insert": [Proposal((1, 2, 9, 3)), Proposal((1, 2, 7, 3)), Proposal((1, 2, 8, 3))]}
        assert [attempt.ids for attempt in search.choose()] == [(1, 2, 9, 3), (1, 2, 7, 3)]

    def test_another_position_for_the_same_token_waits_for_other_tokens(self):
        search, parent = self.start(proposals=2, combinations=0)
        better = make_hypothesis((9, 1, 2, 3), 0.4, vector=np.array([0.7, 0.7]))
        search.add([(Attempt(better.ids, -1.0, parent, "insert"), better)])
        parent.proposals = {"insert": [Proposal((1, 2, 9, 3)), Proposal((1, 2, 3, 9)), Proposal((1, 2, 7, 3))]}
        assert (1, 2, 7, 3) in [attempt.ids for attempt in search.choose()]

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

    def test_a_longer_text_of_usual_tokens_loses_nothing_up_to_the_expected_length(self):
        search, parent = self.start(fluency=0.1, expected_length=6.0)  # its three tokens have a fluency of -1
        longer = make_hypothesis((1, 2, 3, 4, 5, 6), 0.5, -2.0)
        assert search.score(longer) == pytest.approx(search.score(parent))
        assert search.score(make_hypothesis((1, 2, 3, 4, 5, 6), 0.5, -2.5)) < search.score(parent)
        too_long = make_hypothesis((1, 2, 3, 4, 5, 6, 7, 8, 9), 0.5, -3.0)
        assert search.score(too_long) == pytest.approx(search.score(parent) - 0.1)
