"""What a search remembers of its edits: those that it tried, and those that were only drafted."""

import numpy as np
import pytest

from searches import make_hypothesis
from unembed.decoding.guided.edits import Change, SlotBook
from unembed.decoding.guided.fluency import FluencyScore
from unembed.decoding.guided.memory import EditMemory, Effect

BOOK = SlotBook()
PARENT = make_hypothesis((1, 2, 3), vector=np.array([0.5, 0.8]), slots=BOOK.first((1, 2, 3)))
FIRST, LAST = (BOOK.edit(PARENT.slots, [change]) for change in (Change(0, 1, (9,)), Change(2, 3, (8,))))


@pytest.fixture
def memory():
    return EditMemory(np.array([1.0, 0.0]), FluencyScore(0.0))


def make_effect(*difference, move="span"):
    return Effect(np.array(difference), 0.0, move, frozenset(PARENT.slots))


def combine(memory):
    """Return the attempts by their texts; each text comes once."""
    attempts = [attempt for _, attempt in memory.combine(PARENT, cost=0.0)]
    by_text = {attempt.ids: attempt for attempt in attempts}
    assert len(by_text) == len(attempts)
    return by_text


def cosine_after(*differences):
    moved = PARENT.vector + np.sum(differences, axis=0)
    return pytest.approx(moved[0] / np.linalg.norm(moved))


def test_an_edit_that_was_only_guessed_is_combined_with_one_that_was_tried(memory):
    memory.learn(FIRST, make_effect(0.1, -0.1, move="gradient"))
    memory.guess({LAST: make_effect(0.1, -0.2, move="insert")})
    together = combine(memory)[9, 2, 8]
    assert sorted(together.used) == ["gradient", "insert"]
    assert together.expected == cosine_after([0.1, -0.1], [0.1, -0.2])


def test_a_guess_does_not_replace_what_was_measured(memory):
    memory.learn(FIRST, make_effect(0.1, -0.1))
    memory.guess({FIRST: make_effect(0.3, -0.3)})
    assert combine(memory)[9, 2, 3].expected == cosine_after([0.1, -0.1])


def test_what_is_measured_replaces_a_guess(memory):
    memory.guess({FIRST: make_effect(0.3, -0.3), LAST: make_effect(0.2, -0.2)})
    assert combine(memory)[9, 2, 3].expected == cosine_after([0.3, -0.3])
    memory.learn(FIRST, make_effect(0.1, -0.1))
    assert combine(memory)[9, 2, 3].expected == cosine_after([0.1, -0.1])
    assert combine(memory)[9, 2, 8].expected == cosine_after([0.1, -0.1], [0.2, -0.2])


def test_new_guesses_replace_all_earlier_ones(memory):
    memory.guess({FIRST: make_effect(0.3, -0.3)})
    memory.guess({LAST: make_effect(0.2, -0.2)})
    assert set(combine(memory)) == {(1, 2, 8)}


def test_an_edit_that_was_only_guessed_is_not_known(memory):
    memory.guess({FIRST: make_effect(0.3, -0.3)})
    assert not memory.knows(FIRST, PARENT)
    memory.learn(FIRST, make_effect(0.3, -0.3))
    assert memory.knows(FIRST, PARENT)


def test_an_edit_that_adds_a_usual_token_loses_nothing_until_the_text_is_as_long_as_expected():
    effect = Effect(np.zeros(2), -2.0, "insert", frozenset(PARENT.slots))
    for expected_length, loss in ((4, 0.0), (3, 0.2)):
        fluency = FluencyScore(0.1, expected_length)
        fluency.surprise = 2.0
        memory = EditMemory(np.array([1.0, 0.0]), fluency)
        memory.learn(BOOK.edit(PARENT.slots, [Change(1, 1, (9,))]), effect)
        ((score, longer),) = memory.combine(PARENT, cost=0.0)
        assert longer.ids == (1, 9, 2, 3)
        assert score == pytest.approx(longer.expected + fluency(PARENT.fluency, 3) - loss)
