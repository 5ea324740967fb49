"""Without the encoder: likelihoods are the denoiser's, and what a canvas does not hold is refused."""

import numpy as np
import pytest
import torch

from unembed.errors import ConfigError
from unembed.filling import Template
from unembed.filling.asking import length_scores
from unembed.filling.likelihood import SlotLikelihood
from unembed.filling.pieces import read_filled, read_pieces
from unembed.filling.steps import finish

from .conftest import ANIMALS, PLACES


@pytest.fixture
def likelihood(inverter):
    def build(template, *candidates):
        parsed = Template.parse(template)
        pieces = [finish(read_pieces(inverter.tokenizer, parsed, slot, own)) for slot, own in enumerate(candidates)]
        return SlotLikelihood(inverter.engine, inverter.noise, inverter.tokenizer, parsed, candidates, pieces)

    return build


def naive(inverter, vector, template, values, *, one_by_one):
    """The log-probability of values in a template, by passes over one canvas at a time in full precision."""
    ids, slots = read_filled(inverter.tokenizer, Template.parse(template), values)
    canvas = torch.tensor([ids])
    masked = [place for slot in slots for place in slot]
    canvas[0, masked] = inverter.engine.vocabulary.mask
    condition = inverter.engine.condition(vector[None])
    total = float(length_scores(inverter.engine, vector)[len(ids)])
    with torch.no_grad():
        for place in masked:
            where = canvas == inverter.engine.vocabulary.mask
            hidden = inverter.engine.hidden(canvas, condition, inverter.noise.time_of(where.float().mean(1)), where)
            logits = inverter.engine.logits(hidden, where, canvas, condition).log_softmax(-1)
            index = where[0].nonzero()[:, 0].tolist().index(place)
            total += float(logits[index, ids[place]])
            if one_by_one:
                canvas[0, place] = ids[place]
            else:
                canvas[0, masked] = inverter.engine.vocabulary.mask
    return total


def test_each_candidate_is_as_likely_as_its_tokens_are_at_the_masks(inverter, likelihood, fake_encoder):
    vector = torch.from_numpy(fake_encoder.encode(["the dog sleeps."]))[0]
    values = ["cat", "old man", "xyz", "queen"]
    (scores,), together = likelihood("the {x} sleeps.", values).score(vector)
    expected = [naive(inverter, vector, "the {x} sleeps.", [value], one_by_one=False) for value in values]
    assert scores == pytest.approx(expected, abs=0.1)
    assert [place for (place,), _ in together] == np.argsort(-scores).tolist()


def test_two_slots_are_read_token_by_token(inverter, likelihood, fake_encoder):
    vector = torch.from_numpy(fake_encoder.encode(["the dog runs in the park."]))[0]
    template = "the {x} runs in the {y}."
    both = likelihood(template, ["cat", "old man"], PLACES)
    combinations = [(0, 3), (1, 5)]
    expected = [
        naive(inverter, vector, template, [["cat", "old man"][x], PLACES[y]], one_by_one=True) for x, y in combinations
    ]
    assert both.read(vector, combinations) == pytest.approx(expected, abs=0.1)


def test_what_a_canvas_cannot_say_is_impossible(likelihood, fake_encoder):
    vector = torch.from_numpy(fake_encoder.encode(["the dog sleeps."]))[0]
    (scores,), _ = likelihood("the {x} sleeps.", ["cat", "a very long story about the sea and the moon"]).score(vector)
    assert scores[1] <= -1e3 < scores[0]


def test_answers_have_likelihoods_and_no_text_is_embedded(inverter, fake_encoder):
    vector = fake_encoder.encode(["the dog sleeps."])
    (filling,) = inverter.fill("the {x} sleeps.", vector, {"x": ANIMALS}, top=3)
    likelihoods = [answer.likelihood for answer in filling.answers]
    assert likelihoods == sorted(likelihoods, reverse=True)
    assert filling.answers[0].cosine is None, "the tiny inverter has no surrogate"
    assert filling.encoder_calls == filling.surrogate_calls == 0


def test_a_template_longer_than_the_canvas_is_refused(inverter, fake_encoder):
    text = "the king lives in a big house and the queen has a white {x} near the river."
    with pytest.raises(ConfigError, match="more than 12 tokens") as raised:
        inverter.fill(text, fake_encoder.encode(["x"]), {"x": ANIMALS})
    assert "with the encoder it may have any length" in raised.value.remedy


def test_a_free_slot_is_filled_by_the_denoiser(inverter, fake_encoder):
    vector = fake_encoder.encode(["the dog sleeps."])
    (filling,) = inverter.fill("the {x} sleeps.", vector, {"x": "free:1"}, top=16)
    values = [answer.values["x"] for answer in filling.answers]
    assert len(set(values)) == len(values) > 5
    ids = inverter.tokenizer.encode_batch(values, add_special_tokens=False)
    assert {len(each.ids) for each in ids} == {1}


def test_with_the_encoder_a_free_slot_finds_its_word(inverter, fake_encoder):
    vector = fake_encoder.encode(["the horse sleeps in the garden."])
    (filling,) = inverter.fill("the {x} sleeps in the {y}.", vector, {"x": "free:1", "y": PLACES}, encoder=fake_encoder)
    assert filling.answers[0].values == {"x": "horse", "y": "garden"}


def test_a_free_slot_in_a_template_that_is_too_long_names_the_way_out(inverter, fake_encoder):
    text = "the king lives in a big house and the queen has a white {x} near the river."
    with pytest.raises(ConfigError, match="cannot fill the slot 'x' by itself") as raised:
        inverter.fill(text, fake_encoder.encode(["x"]), encoder=fake_encoder)
    assert "x=KIND" in raised.value.remedy
