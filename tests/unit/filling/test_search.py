"""The search with the encoder: finds what was hidden, asks as rarely as it can, and never embeds a text twice."""

import numpy as np
import pytest

from .conftest import ANIMALS, PLACES

TEMPLATE = "the {who} runs in the {place}."
SLOTS = {"who": ANIMALS, "place": PLACES}


@pytest.mark.parametrize("values", [("dog", "snow"), ("queen", "lake"), ("friend", "hill")])
def test_two_slots_are_found_together(inverter, fake_encoder, values):
    vector = fake_encoder.encode([f"the {values[0]} runs in the {values[1]}."])
    fake_encoder.seen.clear()
    (filling,) = inverter.fill(TEMPLATE, vector, SLOTS, encoder=fake_encoder)
    best = filling.answers[0]
    assert tuple(best.values.values()) == values
    assert best.text == f"the {values[0]} runs in the {values[1]}."
    assert best.cosine == pytest.approx(1.0, abs=1e-5)
    assert filling.candidates == len(ANIMALS) * len(PLACES)
    assert len(fake_encoder.seen) == len(set(fake_encoder.seen)) == filling.encoder_calls


def test_answers_are_ranked_by_their_cosine(inverter, fake_encoder):
    vector = fake_encoder.encode(["the small cat sleeps in the house."])
    (filling,) = inverter.fill("the {who} sleeps.", vector, {"who": ANIMALS}, encoder=fake_encoder, top=12)
    vectors = fake_encoder.encode([f"the {who} sleeps." for who in ANIMALS])
    expected = [ANIMALS[place] for place in np.argsort(-(vectors @ vector[0]))]
    assert [answer.values["who"] for answer in filling.answers] == expected


def test_many_candidates_are_screened_and_few_embedded(inverter, fake_encoder):
    hidden = "7351"
    vector = fake_encoder.encode([f"the door of {hidden} is open."])
    fake_encoder.seen.clear()
    (filling,) = inverter.fill("the door of {n} is open.", vector, {"n": "digits:4"}, encoder=fake_encoder, calls=2500)
    assert filling.answers[0].values["n"] == hidden
    assert filling.encoder_calls <= 2500
    assert len(fake_encoder.seen) == filling.encoder_calls


def test_the_budget_is_kept_even_if_the_text_is_another(inverter, fake_encoder):
    vector = fake_encoder.encode(["my mother writes a book."])
    (filling,) = inverter.fill(
        "the {a} of {b}", vector, {"a": "digits:3", "b": "digits:3"}, encoder=fake_encoder, calls=700
    )
    assert 0 < filling.encoder_calls <= 700
    assert filling.answers[0].probability < 0.95


def test_the_next_vector_uses_what_was_embedded_for_the_last(inverter, fake_encoder):
    vectors = fake_encoder.encode(["the xx sleeps.", "the dog sleeps.", "the queen sleeps."])
    first, *others = inverter.fill("the {who} sleeps.", vectors, {"who": ANIMALS}, encoder=fake_encoder)
    assert first.encoder_calls == len(ANIMALS)
    assert [other.encoder_calls for other in others] == [0, 0]
    assert [other.answers[0].values["who"] for other in others] == ["dog", "queen"]


def test_with_the_encoder_a_template_may_be_longer_than_a_canvas(inverter, fake_encoder):
    """The tiny canvas holds 12 tokens."""
    text = "the king lives in a big house and the queen has a white {x} near the river."
    vector = fake_encoder.encode([text.format(x="horse")])
    (filling,) = inverter.fill(text, vector, {"x": ANIMALS}, encoder=fake_encoder)
    assert filling.answers[0].values == {"x": "horse"}
    assert filling.answers[0].likelihood is None


def test_the_same_seed_gives_the_same_answers(inverter, fake_encoder, build_fake_encoder):
    vector = fake_encoder.encode(["the old man drinks tea."])
    tried = [
        inverter.fill("{n} dogs", vector, {"n": "digits:4"}, encoder=build_fake_encoder(), calls=900, seed=seed)
        for seed in (3, 3)
    ]
    assert tried[0] == tried[1]
