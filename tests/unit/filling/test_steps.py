"""A filling pauses often, so that a server can do other work in between, and no template makes one step long."""

import time

import pytest

from unembed.filling.steps import finish

from .conftest import ANIMALS, PLACES


def texts_between_pauses(steps, seen) -> list[int]:
    """How many texts were embedded in each step."""
    counts, before = [], len(seen)
    for _ in steps:
        counts.append(len(seen) - before)
        before = len(seen)
    return [*counts, len(seen) - before]


@pytest.mark.parametrize(
    ("template", "candidates"),
    [
        ("the door of {n} is open.", {"n": "digits:3"}),
        ("the door of {n} is open.", {"n": "digits:4"}),
        ("the {who} runs in {n}.", {"who": ANIMALS, "n": "digits:3"}),
        ("the {who} runs in the {place}.", {"who": "free:1", "place": PLACES}),
    ],
    ids=["all are tried", "some are tried", "two slots", "a free slot"],
)
def test_no_step_embeds_more_than_128_texts(inverter, fake_encoder, template, candidates):
    (vector,) = fake_encoder.encode(["my mother writes a book."])
    filler = inverter.prepare_filling(template, candidates, encoder=fake_encoder, calls=2500)
    fake_encoder.seen.clear()
    counts = texts_between_pauses(filler.steps(vector), fake_encoder.seen)
    assert max(counts) <= 128
    assert len(fake_encoder.seen) > 128, "it proves nothing"


def test_the_passes_for_a_free_slot_have_pauses_too(inverter, fake_encoder):
    (vector,) = fake_encoder.encode(["the dog sleeps."])
    steps = inverter.prepare_filling("the {x} sleeps.", {"x": "free:3"}).steps(vector)
    assert sum(1 for _ in steps) >= 3


def test_with_pauses_or_without_the_answers_are_the_same(inverter, fake_encoder):
    (vector,) = fake_encoder.encode(["the dog runs in the park."])
    filler = inverter.prepare_filling("the {a} runs in the {b}.", {"a": ANIMALS, "b": PLACES}, encoder=fake_encoder)
    assert finish(filler.steps(vector)).answers == filler.fill(vector).answers


@pytest.mark.parametrize("blind", [False, True])
def test_many_slots_with_candidates_of_many_lengths_take_no_longer_than_few(inverter, fake_encoder, blind):
    names = [f"a{number}" for number in range(10)]
    values = [" ".join(["dog"] * count) for count in range(1, 11)]  # ten lengths in ten slots: 10^10 shapes
    template = " ".join(f"{{{name}}}" for name in names)
    (vector,) = fake_encoder.encode(["dog " * 10])
    encoder = None if blind else fake_encoder
    began = time.process_time()
    (filling,) = inverter.fill(template, vector, dict.fromkeys(names, values), encoder=encoder, calls=200)
    assert time.process_time() - began < 10
    assert filling.candidates == 10**10


def test_more_combinations_than_a_machine_word_counts_are_counted(inverter, fake_encoder):
    (vector,) = fake_encoder.encode(["the dog"])
    (filling,) = inverter.fill(
        "{a:digits:4} {b:digits:4} {c:digits:4} {d:digits:4} {e:digits:4}", vector, encoder=fake_encoder, calls=50
    )
    assert filling.candidates == 10**20
    assert 0.0 <= filling.answers[0].probability <= 1.0
