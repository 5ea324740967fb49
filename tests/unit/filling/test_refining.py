"""Free slots with the encoder's gradient: tokens are exchanged until the text is right."""

import numpy as np
import pytest

from unembed.canvas import CanvasVocabulary
from unembed.decoding import TextOracle
from unembed.encoders import load_encoder
from unembed.filling import Template
from unembed.filling.memory import FilledVectors
from unembed.filling.refining import refine
from unembed.filling.steps import finish


@pytest.fixture
def oracle(build_encoder_folder):
    encoder = load_encoder(str(build_encoder_folder("tiny")), device="cpu")
    return TextOracle(encoder, encoder.tokenizer, CanvasVocabulary.of(encoder.tokenizer), 12)


def test_exchanges_bring_the_text_nearer_and_stay_within_the_calls(oracle):
    vectors = FilledVectors(Template.parse("the {x} sleeps."), [["cat", "old man"]], oracle.embed)
    target = oracle.embed_exactly(["the white horse sleeps."])[0]
    before = [((place,), float(vector @ target)) for place, vector in enumerate(vectors.embed([(0,), (1,)]))]
    start = sorted(before, key=lambda item: -item[1])
    ranked = finish(refine(oracle, vectors, [0], start, target, calls=300, enough=0.9999))
    assert ranked[0][1] > start[0][1]
    assert len(vectors) - 2 <= 300
    assert len(vectors.candidates[0]) > 2
    cosines = [cosine for _, cosine in ranked]
    assert cosines == sorted(cosines, reverse=True)
    assert float(oracle.embed([vectors.write(ranked[0][0])])[0] @ target) == pytest.approx(cosines[0], abs=1e-3)


def test_known_parts_and_other_slots_stay_as_they_are(oracle):
    vectors = FilledVectors(Template.parse("the {x} sleeps in the {y}."), [["cat"], ["park"]], oracle.embed)
    target = oracle.embed_exactly(["the dog sleeps in the garden."])[0]
    start = [((0, 0), float(vectors.embed([(0, 0)])[0] @ target))]
    finish(refine(oracle, vectors, [0], start, target, calls=100, enough=0.9999))
    assert vectors.candidates[1] == ["park"]


def test_without_a_gradient_nothing_changes(fake_encoder, tiny_tokenizer):
    oracle = TextOracle(fake_encoder, tiny_tokenizer, CanvasVocabulary.of(tiny_tokenizer), 12)
    vectors = FilledVectors(Template.parse("the {x} sleeps."), [["cat"]], oracle.embed)
    start = [((0,), float(vectors.embed([(0,)])[0] @ np.ones(16)))]
    assert finish(refine(oracle, vectors, [0], start, np.ones(16), calls=100, enough=0.9999)) == start
