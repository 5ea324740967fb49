"""Slots filled over real HTTP: the answers are those of Python, and mistakes are told before any work begins."""

from dataclasses import asdict

import numpy as np
import pytest

from unembed.defences import Defence, apply
from unembed.server import Limits, ServedModel

ANIMALS = ["cat", "dog", "bird", "horse", "king", "queen"]
PLACES = ["park", "garden", "house", "city", "river"]
TEMPLATE = "the {who} runs in the {place}."
SLOTS = {"who": ANIMALS, "place": PLACES}
LONG = "the king lives in a big house and the queen has a white {x} near the river."


@pytest.fixture
def start(serve, make_speller, fake_encoder):
    """Starts servers of an inverter with its encoder, and returns a client of each."""
    return lambda **settings: serve([ServedModel("tiny", make_speller(), fake_encoder)], **settings)


@pytest.fixture
def dog(fake_encoder):
    return fake_encoder.encode(["the dog runs in the park."])[0]


def fill(client, **body):
    answer = client.post("/api/fill", json=body)
    assert answer.status_code == 200, answer.text
    return answer.json()


def refusal(client, **body):
    answer = client.post("/api/fill", json=body)
    assert answer.status_code == 422, answer.text
    assert answer.json()["remedy"]
    return answer.json()


def told(filling) -> dict:
    """What both Python and HTTP say; rounding in the last digits depends on how texts are batched."""
    names = ("verdict", "candidates", "encoder_calls", "surrogate_calls")
    return {name: filling[name] for name in names} | {
        "absent": pytest.approx(filling["absent"], abs=1e-4),
        "answers": [
            {
                "values": answer["values"],
                "text": answer["text"],
                "probability": pytest.approx(answer["probability"], abs=1e-4),
                "cosine": pytest.approx(answer["cosine"], abs=1e-4),
                "likelihood": pytest.approx(answer["likelihood"], abs=1e-2),
            }
            for answer in filling["answers"]
        ],
    }


@pytest.mark.parametrize(
    "candidates",
    [SLOTS, {"who": "free:1", "place": PLACES}, {"who": ANIMALS, "place": "months"}],
    ids=["lists", "a free slot", "a kind"],
)
@pytest.mark.parametrize("blind", [False, True], ids=["with the encoder", "blind"])
def test_the_answers_are_those_of_python(start, make_speller, fake_encoder, dog, candidates, blind):
    answer = fill(start(), template=TEMPLATE, vector=dog.tolist(), candidates=candidates, blind=blind, top=3)
    encoder = None if blind else fake_encoder
    (expected,) = make_speller().fill(TEMPLATE, dog, candidates, encoder=encoder, top=3)
    assert {name: answer[name] for name in asdict(expected)} == told(asdict(expected))
    assert len(answer["answers"]) == 3
    assert answer["model"] == "tiny"
    assert answer["milliseconds"] > 0


def test_what_was_hidden_is_found_and_its_probability_and_that_of_no_candidate_are_told(start, dog):
    answer = fill(start(), template=TEMPLATE, vector=dog.tolist(), candidates=SLOTS)
    best = answer["answers"][0]
    assert best["values"] == {"who": "dog", "place": "park"}
    assert best["text"] == "the dog runs in the park."
    assert best["cosine"] == pytest.approx(1.0, abs=1e-5)
    assert best["likelihood"] is None
    assert answer["candidates"] == len(ANIMALS) * len(PLACES)
    assert 0 < answer["encoder_calls"] <= 30
    probabilities = [each["probability"] for each in answer["answers"]]
    assert probabilities == sorted(probabilities, reverse=True)
    assert sum(probabilities) + answer["absent"] <= 1 + 1e-6


def test_a_slot_without_candidates_has_the_kind_that_the_template_says(start):
    answer = fill(start(), template="the door of {n:digits:2} is open.", text="the door of 73 is open.")
    assert answer["answers"][0]["values"] == {"n": "73"}
    assert answer["candidates"] == 100


def test_a_text_is_embedded_whole_although_no_canvas_holds_it(start):
    answer = fill(start(), template=LONG, text=LONG.format(x="horse"), candidates={"x": ANIMALS})
    assert answer["answers"][0]["text"] == LONG.format(x="horse")
    assert answer["answers"][0]["cosine"] == pytest.approx(1.0, abs=1e-5), "it would not be, had the text been cut"


def test_blind_asks_no_encoder(start, fake_encoder, dog):
    client = start()
    fake_encoder.seen.clear()
    answer = fill(client, template=TEMPLATE, vector=dog.tolist(), candidates=SLOTS, blind=True)
    assert answer["encoder_calls"] == 0
    assert answer["answers"][0]["likelihood"] < 0
    assert fake_encoder.seen == []


def test_no_more_texts_are_embedded_than_asked_for(start, fake_encoder):
    client = start()
    fake_encoder.seen.clear()
    answer = fill(client, template="{n:digits:3} dogs", vector=np.ones(16).tolist(), calls=50)
    assert 0 < answer["encoder_calls"] <= 50
    assert len(fake_encoder.seen) == answer["encoder_calls"]


def test_a_defence_is_applied_before(start, make_speller, fake_encoder, dog):
    defence = {"kind": "noise", "strength": 0.8, "seed": 5}
    answer = fill(start(), template=TEMPLATE, vector=dog.tolist(), candidates=SLOTS, defence=defence)
    defended = apply(dog[None], Defence(**defence))
    (expected,) = make_speller().fill(TEMPLATE, defended, SLOTS, encoder=fake_encoder, top=5)
    assert {name: answer[name] for name in asdict(expected)} == told(asdict(expected))
    assert answer["answers"][0]["cosine"] < 0.999


def test_a_vector_that_does_not_look_like_the_encoders_is_warned_of(start, dog):
    client = start()
    body = {"template": TEMPLATE, "candidates": SLOTS}
    assert fill(client, vector=dog.tolist(), **body)["warnings"] == []
    (warning,) = fill(client, vector=(3 * dog).tolist(), **body)["warnings"]
    assert "does not look like those of fake" in warning


def test_without_the_encoder_only_blind_requests_are_filled(serve, make_speller, dog):
    client = serve([ServedModel("blind", make_speller())])
    body = {"template": TEMPLATE, "candidates": SLOTS}
    refused = refusal(client, vector=dog.tolist(), **body)
    assert "Filling slots needs the encoder 'fake'" in refused["message"]
    assert "`blind: true`" in refused["remedy"]
    assert "Embedding a text needs the encoder" in refusal(client, text="the dog", blind=True, **body)["message"]
    assert fill(client, vector=dog.tolist(), blind=True, **body)["answers"]


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({"vector": None}, "exactly one of text and vector"),
        ({"text": "the dog"}, "exactly one of text and vector"),
        ({"vector": [1.0, 2.0]}, "2 numbers, not 16"),
        ({"vector": [0.0] * 16}, "all zeros"),
        ({"vector": None, "text": "x" * 2001}, "2001 characters; expected at most 2000"),
        ({"vector": None, "text": "\u0007"}, "no tokens"),
        ({"template": "the dog"}, "has no slot"),
        ({"template": "the {who"}, "brace without its partner"),
        ({"template": "{who} and {who}"}, "stands in the template twice"),
        ({"template": "{0}", "candidates": {}}, "is not a slot"),
        ({"template": ""}, "template: String should have at least 1 character"),
        ({"template": TEMPLATE + "x" * 2000}, "characters; expected at most 2000"),
        ({"template": "".join(f"{{a{n}}} " for n in range(9)), "candidates": {}}, "9 slots; expected at most 8"),
        ({"template": LONG, "candidates": {"x": ANIMALS}, "blind": True}, "more than 12 tokens"),
        ({"candidates": {"whom": ANIMALS}}, "no slot 'whom': did you mean 'who'?"),
        ({"candidates": {"who": []}}, "no candidates for the slot 'who': the list is empty"),
        ({"candidates": {"who": [" ", ""]}}, "the list is empty"),
        ({"candidates": {"who": "citis"}}, "no kind 'citis': did you mean 'cities'?"),
        ({"candidates": {"who": "digits:7"}}, "digits:7 is not a number of digits"),
        ({"candidates": {"who": "digits:6"}}, "The slot 'who' has more than 100,000 candidates"),
        ({"candidates": {"who": "digits:5", "place": PLACES}}, "100005 candidates for all slots together"),
        ({"candidates": {"who": ["cat"] * 100_001}}, "100001 candidates for all slots together"),
        ({"candidates": {"who": ["cat", "c" * 101]}}, "slot 'who' has 101 characters; expected at most 100"),
        ({"candidates": {"who": 5}}, "candidates.who.str: Input should be a valid string"),
        ({"candidates": ANIMALS}, "candidates: Input should be a valid dictionary"),
        ({"calls": 6001}, "calls is 6001; expected at most 6000"),
        ({"calls": 0}, "calls: Input should be greater than or equal to 1"),
        ({"top": 17}, "top: Input should be less than or equal to 16"),
        ({"model": "tinny"}, "did you mean 'tiny'?"),
        ({"strategy": "guided"}, "strategy: Extra inputs are not permitted"),
    ],
)
def test_a_mistake_is_answered_with_what_was_expected(start, fake_encoder, dog, changes, expected):
    body = {"template": TEMPLATE, "vector": dog.tolist(), "candidates": SLOTS} | changes
    client = start()
    fake_encoder.seen.clear()
    assert expected in refusal(client, **{name: value for name, value in body.items() if value is not None})["message"]
    assert fake_encoder.seen == []


def test_the_limits_are_the_servers_own_and_are_told(start, dog):
    client = start(limits=Limits(slots=1, slot_candidates=3, candidate_characters=4, calls=2))
    limits = client.get("/api/models").json()["limits"]
    assert (limits["slots"], limits["slot_candidates"], limits["candidate_characters"]) == (1, 3, 4)
    body = {"template": "the {who} runs.", "vector": dog.tolist()}
    assert "2 slots; expected at most 1" in refusal(client, **body | {"template": TEMPLATE})["message"]
    assert "more than 3 candidates" in refusal(client, candidates={"who": "cities"}, **body)["message"]
    assert "5 characters; expected at most 4" in refusal(client, candidates={"who": ["queen"]}, **body)["message"]
    assert fill(client, candidates={"who": ["cat", "dog", "king"]}, **body)["encoder_calls"] <= 3


def test_a_list_is_read_even_if_it_has_more_values_than_the_vectors_of_a_batch(start, dog):
    client = start(limits=Limits(batch=1, text_characters=100))
    numbers = [f"x{number}" for number in range(5000)]
    answer = fill(client, template="the {x} runs.", vector=dog.tolist(), candidates={"x": numbers}, calls=10)
    assert answer["candidates"] == 5000
