"""The search itself, with an encoder that can only be asked."""

import numpy as np
import pytest

from unembed.config import DecodingConfig, ZeroConfig, parse
from unembed.decoding.zero import ZeroTools, decode_zero
from unembed.decoding.zero.search import ZeroSearch
from unembed.errors import ConfigError, VectorError
from unembed.inverter import Inverter

TEXT = "the old man drinks tea"
CONFIG = ZeroConfig(effort="thorough", calls=400, pairs=20, fluency=0.02, free_nats=4.0)


@pytest.fixture
def tools(turned, fake_encoder, language, bank):
    return ZeroTools(turned, fake_encoder, language, fake_encoder.tokenizer, bank, longest=12)


@pytest.fixture
def read(tools):
    def read(config=CONFIG, **options):
        steps = list(decode_zero(tools, tools.encoder.encode([TEXT]), config, **options))
        return steps, tools.tokenizer.decode(steps[-1].canvas[0].tolist())

    return read


def test_a_text_comes_back(read):
    steps, text = read()
    assert text == TEXT
    assert float(steps[-1].score) == pytest.approx(1.0, abs=1e-4)
    assert [bool(step.final) for step in steps] == [False] * (len(steps) - 1) + [True]


def test_every_text_that_the_encoder_was_asked_is_counted_and_none_is_asked_twice(read, turned):
    steps, _ = read()
    assert int(steps[-1].texts_embedded) == len(turned.seen) - 1  # the text itself
    assert len(turned.seen[1:]) == len(set(turned.seen[1:]))


@pytest.mark.parametrize("calls", [21, 70, 130])
def test_it_asks_no_more_than_it_may(read, turned, calls):
    steps, _ = read(CONFIG.model_copy(update={"calls": calls}))
    assert int(steps[-1].texts_embedded) == len(turned.seen) - 1 == calls


def test_it_does_not_get_worse(read):
    scores = [float(step.score) for step in read(CONFIG.model_copy(update={"fluency": 0.0}))[0]]
    assert scores == sorted(scores)


def test_the_language_model_is_told_the_words_that_are_near(read, language):
    read()
    assert language.keywords[0] == []
    assert {"man", "drinks", "tea"} & set(language.keywords[1])


def test_the_beginnings_of_texts_are_asked_with_the_nearest_word(read, turned, language):
    read()
    single = [text for text in turned.seen[21:] if " " not in text]
    target = turned.encode([TEXT])[0]
    nearest = max(single, key=lambda word: turned.encode([word])[0] @ target)
    assert {f"the {nearest}", f"we {nearest}"} <= set(turned.seen)
    assert language.questions == [False, False]


def test_the_same_encoder_needs_no_map_and_all_that_it_ranks_counts(tools, fake_encoder, language, bank):
    same = ZeroTools(fake_encoder, fake_encoder, language, tools.tokenizer, bank, longest=12)
    before = len(fake_encoder.seen)
    *_, last = decode_zero(same, fake_encoder.encode([TEXT]), CONFIG)
    assert tools.tokenizer.decode(last.canvas[0].tolist()) == TEXT
    assert int(last.texts_embedded) == len(fake_encoder.seen) - before - 1


def test_no_text_is_longer_than_a_canvas(tools):
    tools.longest = 2
    for step in decode_zero(tools, tools.encoder.encode([TEXT]), CONFIG):
        assert step.canvas.shape[1] <= 2


def test_there_must_be_calls_left_after_the_first_map():
    with pytest.raises(ConfigError, match="calls is 48, but 48 are needed for the first map"):
        parse(DecodingConfig, {"strategy": "zero", "zero": {"calls": 48}}, "The options")


def test_a_prior_says_which_words_are_asked_first(tools, bank, turned):
    prior = np.zeros(len(bank.words))
    prior[bank.index["queen"]] = 100.0
    search = ZeroSearch(
        turned.encode([TEXT])[0],
        CONFIG.model_copy(update={"prior": 1.0}),
        bank=bank,
        language=tools.language,
        local=tools.local.encode,
        theirs=turned.encode,
        pairs=tools.pairs(20),
        prior=prior,
    )
    next(search.rounds())
    assert turned.seen[21] == "queen"


def test_who_has_had_enough_gets_the_best_text_so_far(tools):
    vectors = tools.encoder.encode([TEXT, TEXT])
    steps = list(decode_zero(tools, vectors, CONFIG, interrupted=iter([False, False, True, True, True]).__next__))
    assert [int(step.rows) for step in steps] == [0] * len(steps)
    assert [bool(step.final) for step in steps] == [False, False, True]


class TestInverter:
    @pytest.fixture
    def inverter(self, tiny_checkpoint, monkeypatch, language, fake_encoder):
        monkeypatch.setattr("unembed.inverter.zero.load_language_model", lambda name, device: language)
        monkeypatch.setattr("unembed.inverter.zero.load_described_encoder", lambda own, device: fake_encoder)
        return Inverter.from_pretrained(tiny_checkpoint)

    def test_it_reads_vectors_of_an_encoder_that_it_was_not_trained_for(self, inverter, turned):
        (found,) = inverter.invert_text([TEXT], turned, strategy="zero", zero=CONFIG.model_dump())
        assert found.text == TEXT
        assert found.strategy == "zero"
        assert found.encoder_calls == len(turned.seen) - 1
        assert found.surrogate_calls == 0

    def test_the_encoder_must_be_given(self, inverter):
        with pytest.raises(ConfigError, match="asks the encoder"):
            inverter.invert(np.ones((1, 16)), strategy="zero")

    def test_vectors_of_another_dimension_are_refused(self, inverter, turned):
        with pytest.raises(VectorError, match=r"\(1, 5\); turned gives 16 numbers each"):
            inverter.invert(np.ones((1, 5)), strategy="zero", encoder=turned)

    def test_vectors_that_are_none_are_refused(self, inverter, turned):
        with pytest.raises(VectorError, match="1 of 1 vectors are all zeros"):
            inverter.invert(np.zeros((1, 16)), strategy="zero", encoder=turned)

    def test_the_length_is_not_its_to_be_told(self, inverter, turned):
        with pytest.raises(ConfigError, match="finds the length itself"):
            inverter.invert(np.ones((1, 16)), strategy="zero", encoder=turned, lengths=[3])

    def test_rounds_of_canvases_are_another_search(self, inverter, turned):
        with pytest.raises(ConfigError, match="'zero' does not search"):
            inverter.search_rounds(np.ones((1, 16)), encoder=turned, strategy="zero")


def test_more_effort_asks_more():
    limits = [ZeroConfig(effort=effort).call_limit for effort in ("quick", "normal", "thorough")]
    assert limits == sorted(set(limits))
    assert DecodingConfig(strategy="zero", zero={"calls": 70}).call_limit == 70
