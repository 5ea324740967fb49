"""What a guided search does with drafts of vectors: it looks closely, combines untried changes, and looks ahead."""

import numpy as np
import pytest

from searches import make_hypothesis, make_search, take
from unembed.decoding.guided.hypothesis import Proposal
from unembed.decoding.guided.moves import exchange

PARENT = np.array([0.5, 0.8])


class Drafts:
    """Each token adds something to a vector, by itself and wherever it stands; remembers what it was asked."""

    def __init__(self, **words):
        self.worth = {int(name[1:]): np.array(worth) for name, worth in words.items()}
        self.asked = []

    def __call__(self, texts):
        self.asked.extend(texts)
        nothing = np.zeros(2)
        return np.stack([PARENT + sum((self.worth.get(token, nothing) for token in text), nothing) for text in texts])


def start(draft, **config):
    search = make_search(draft=draft, **config)
    parent = make_hypothesis((1, 2, 3), vector=PARENT)
    search.is_new(parent.ids)
    take(search, parent)
    return search, parent


class TestLookingClosely:
    INSERTIONS = ((1, 2, 7, 3), (1, 2, 9, 3), (1, 2, 8, 3))

    def first_of(self, draft):
        search, parent = start(draft, proposals=1, combinations=0)
        parent.proposals = {"insert": [Proposal(ids) for ids in self.INSERTIONS]}
        return search.choose()[0].ids

    def test_what_the_drafts_like_best_is_tried_first(self):
        assert self.first_of(None) == self.INSERTIONS[-1]
        assert self.first_of(Drafts(w9=(0.1, 0.0))) == self.INSERTIONS[1]
        assert self.first_of(Drafts(w8=(-0.1, 0.0), w9=(-0.2, 0.0))) == self.INSERTIONS[0]

    def test_only_the_first_proposals_of_each_move_are_drafted(self):
        drafts = Drafts()
        search, parent = start(drafts, combinations=0)
        parent.proposals = {
            "insert": [Proposal((1, 2, token, 3)) for token in range(100, 150)],
            "delete": [Proposal((1, 2)), Proposal((2, 3))],
        }
        search.choose()
        assert [len(ids) for ids in drafts.asked if ids != parent.ids].count(4) == 32
        assert {(1, 2), (2, 3)} < set(drafts.asked)
        assert (1, 2, 149, 3) in drafts.asked, "those that look best at a glance are drafted"

    def test_no_proposal_is_lost(self):
        search, parent = start(Drafts(w9=(0.1, 0.0)), proposals=8, combinations=3)
        wanted = {(1, 2, token, 3) for token in range(4, 44)}
        parent.proposals = {"insert": [Proposal(ids) for ids in sorted(wanted)]}
        tried = set()
        while attempts := search.choose():
            # A combination may be a single change, and so the same text as a proposal.
            tried |= {attempt.ids for attempt in attempts if search.is_new(attempt.ids)}
        assert wanted <= tried


class TestCombinations:
    CHANGES = (Proposal((9, 2, 3)), Proposal((1, 2, 8)))

    def combinations(self, draft):
        search, parent = start(draft)
        parent.proposals = {"span": list(self.CHANGES)}
        return {attempt.ids: attempt for attempt in search.choose() if attempt.move == "compose"}

    def test_changes_that_were_never_tried_are_done_together_if_their_drafts_are_good(self):
        helps = Drafts(w9=(0.05, -0.1), w8=(0.05, -0.1))
        attempt = self.combinations(helps)[9, 2, 8]
        assert attempt.used == ("span", "span")
        assert attempt.expected == pytest.approx(0.6 / np.hypot(0.6, 0.6))
        assert self.combinations(None) == {}

    def test_changes_whose_drafts_are_worse_are_not_combined(self):
        assert self.combinations(Drafts(w9=(-0.05, 0.1), w8=(-0.05, 0.1))) == {}

    def measured(self, draft):
        """Return what is tried after two changes have helped, each alone."""
        search, parent = start(draft)
        children = [make_hypothesis(ids, 0.6, vector=np.array([0.55, 0.7])) for ids, _ in self.CHANGES]
        take(search, *children, parent=parent)
        return [attempt.ids for attempt in search.choose()]

    def test_a_combination_that_its_draft_speaks_against_is_not_tried(self):
        class Quarrel(Drafts):
            def __call__(self, texts):
                together = np.array([[9 in text and 8 in text] for text in texts])
                return super().__call__(texts) - together * np.array([3.0, 0.0])

        helps = {"w9": (0.05, -0.1), "w8": (0.05, -0.1)}
        assert (9, 2, 8) in self.measured(Drafts(**helps))
        assert (9, 2, 8) not in self.measured(Quarrel(**helps))


START, WANTED = (1, 2, 3, 4, 5, 6), (2, 1, 4, 3, 6, 5)


def draft_order(texts):
    """Draft vectors that turn towards the target with each token in its place."""
    right = np.array([sum(a == b for a, b in zip(text, WANTED, strict=True)) for text in texts])
    return np.stack([right / 6, 1.0 - right / 6], axis=1)


def swap_neighbours(ids, count):
    return [exchange(ids, (index, index + 1, index + 1, index + 2)) for index in range(len(ids) - 1)][:count]


class TestLookingAhead:
    def start(self, draft=draft_order, stuck=True):
        search = make_search(draft=draft, patience=99)
        parent = make_hypothesis(START, vector=draft_order([START])[0])
        search.is_new(START)
        take(search, parent)
        if stuck:
            take(search)  # a round that brings nothing
        return search, parent

    def test_texts_that_several_changes_lead_to_are_proposed_the_most_promising_last(self):
        search, parent = self.start()
        proposals = search.look_ahead(parent, swap_neighbours)
        assert proposals[-1].ids == WANTED  # three changes away
        expected = draft_order([proposal.ids for proposal in proposals])[:, 0].tolist()
        assert expected == sorted(expected)

    def test_the_nearest_texts_are_among_them_too_and_none_comes_twice(self):
        search, parent = self.start()
        texts = [proposal.ids for proposal in search.look_ahead(parent, swap_neighbours)]
        assert len(texts) == len(set(texts))
        assert set(swap_neighbours(START, 5)) < set(texts)

    def test_no_text_is_proposed_that_was_embedded_before(self):
        search, parent = self.start()
        seen = {WANTED, *swap_neighbours(START, 2)}
        for ids in seen:
            assert search.is_new(ids)
        texts = {proposal.ids for proposal in search.look_ahead(parent, swap_neighbours)}
        assert texts
        assert not texts & {START, *seen}

    def test_it_ends_where_nothing_new_is_left(self):
        search, parent = self.start()
        assert search.look_ahead(parent, lambda ids, count: [START]) == []

    def test_nothing_is_proposed_or_drafted_while_the_search_gains(self):
        asked = []
        search, parent = self.start(lambda texts: asked.extend(texts) or draft_order(texts), stuck=False)
        assert search.look_ahead(parent, swap_neighbours) == []
        assert asked == []
        take(search)
        assert search.look_ahead(parent, swap_neighbours) != []
        better = make_hypothesis(swap_neighbours(START, 1)[0], 0.9, vector=np.array([0.9, 0.1]))
        take(search, better, parent=parent)
        assert search.look_ahead(better, swap_neighbours) == []

    def test_what_is_drawn_and_drafted_does_not_grow_with_the_number_of_texts(self):
        drawn, asked = [], []
        search, parent = self.start(lambda texts: asked.extend(texts) or np.tile(PARENT, (len(texts), 1)))

        def append_a_number(ids, count):
            drawn.append(count)
            return [(*ids, number) for number in range(count)]

        proposals = search.look_ahead(parent, append_a_number)
        assert drawn == [120] + 3 * 5 * [24]
        assert len(proposals) == 4 * 48
        assert set(asked) == {START, *(proposal.ids for proposal in proposals)}
