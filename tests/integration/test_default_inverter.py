"""The inverter in the package, as a user meets it first: offline, with the real encoder, from a text or its vector."""

import json

import pytest

from unembed import Inverter
from unembed.measures import token_f1

# Plain sentences of everyday English, written for this test.
TEXTS = [
    "the patient has a high fever.",
    "she lost her job last week.",
    "the train to london is late.",
    "they want to buy a new house.",
    "my brother plays the guitar.",
    "the bank closed his account.",
]


@pytest.fixture(scope="module")
def inverter():
    return Inverter.default()


def test_half_of_the_words_come_back_from_the_vectors_alone(inverter, minilm):
    recovered = inverter.invert(minilm.encode(TEXTS))

    def ids(text):
        return inverter.tokenizer.encode(text, add_special_tokens=False).ids

    scores = [token_f1(ids(one.text), ids(text)) for one, text in zip(recovered, TEXTS, strict=True)]
    assert sum(scores) / len(scores) > 0.45
    assert all(one.encoder_calls == 0 for one in recovered)


def test_with_the_encoder_a_short_sentence_comes_back_nearly_whole(inverter, minilm):
    (found,) = inverter.invert(minilm.encode(TEXTS[1:2]), strategy="guided", encoder=minilm, guided={"rounds": 8})
    assert found.score > 0.9


def test_it_needs_no_option_on_the_command_line(run_cli):
    ended = run_cli("invert", TEXTS[0], "--json")
    assert ended.code == 0, ended.err
    found = json.loads(ended.out)
    assert found["original"] == TEXTS[0]
    assert found["comparison"]["token_f1"] > 0.1


def test_it_says_what_it_is_and_names_no_place_of_the_machine_that_made_it(inverter):
    assert inverter.info.encoder.name == "all-MiniLM-L6-v2"
    assert inverter.info.fingerprint is not None
    assert "/" not in inverter.info.model_dump_json(include={"model", "metrics"})
