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


def test_most_of_the_words_come_back_from_the_vectors_alone(inverter, minilm):
    recovered = inverter.invert(minilm.encode(TEXTS))

    def ids(text):
        return inverter.tokenizer.encode(text, add_special_tokens=False).ids

    def mean_f1(texts):
        return sum(token_f1(ids(each.text), ids(text)) for each, text in zip(recovered, texts, strict=True)) / 6

    assert mean_f1(TEXTS) > 0.7
    assert mean_f1([*TEXTS[1:], TEXTS[0]]) < 0.3, "what English sentences share anyway"
    assert all(each.encoder_calls == 0 for each in recovered)


def test_with_the_encoder_a_short_sentence_comes_back_nearly_whole(inverter, minilm):
    (recovered,) = inverter.invert(minilm.encode(TEXTS[1:2]), strategy="guided", encoder=minilm, guided={"rounds": 8})
    assert recovered.score > 0.9


def test_it_needs_no_option_on_the_command_line(run_cli):
    ended = run_cli("invert", TEXTS[0], "--json")
    assert ended.code == 0, ended.err
    told = json.loads(ended.out)
    assert told["original"] == TEXTS[0]
    assert told["comparison"]["token_f1"] > 0.5


def test_it_says_what_it_is_and_names_no_folder_of_the_machine_that_made_it(inverter):
    assert inverter.info.encoder.name == "all-MiniLM-L6-v2"
    assert inverter.info.fingerprint is not None
    assert "/" not in inverter.info.model_dump_json(include={"model", "metrics"})
