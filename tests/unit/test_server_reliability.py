"""How far a text can be trusted, in words."""

import re

import numpy as np
import pytest

from unembed.inverter import Inversion, Inverter
from unembed.server.reliability import Judge


def text(*, confidence: float = 0.9, tokens: int = 8, calls: int = 0) -> Inversion:
    return Inversion("a text", [5] * tokens, ["a"] * tokens, [confidence] * tokens, "confidence", 8, 0.0, calls)


@pytest.fixture(scope="module")
def judge() -> Judge:
    return Judge(Inverter.default())


VECTOR = np.random.default_rng(0).normal(size=384).astype(np.float32)


@pytest.mark.parametrize(
    ("cosine", "calls", "level"),
    [(0.97, 0, "close"), (0.75, 0, "rough"), (0.3, 0, "noise"), (0.93, 200, "rough"), (0.99, 200, "close")],
)
def test_the_cosine_decides_where_it_is_known_and_a_search_must_reach_more(judge, cosine, calls, level):
    reliability = judge.judge(text(calls=calls), VECTOR, cosine, [])
    assert reliability.level == level
    assert f"{cosine:.2f}" in reliability.reason


def test_a_vector_that_is_not_the_encoders_gives_noise_whatever_its_cosine(judge):
    assert judge.judge(text(), VECTOR, 0.99, ["It does not look like MiniLM's."]).level == "noise"


def test_without_the_encoder_known_texts_with_like_signs_decide(judge):
    usual = np.asarray(judge.inverter.info.fingerprint.mean, dtype=np.float32)
    sure, unsure = (judge.judge(text(confidence=sure), usual, None, []) for sure in (0.95, 0.05))
    percents = [
        int(re.search(r"(\d+)% of the words came back \(an estimate\)", each.reason)[1]) for each in (sure, unsure)
    ]
    assert percents[0] > percents[1] + 10
    order = ["noise", "rough", "close"]
    assert order.index(sure.level) >= order.index(unsure.level)


def test_without_encoder_and_calibration_nothing_is_claimed(make_inverter):
    assert Judge(make_inverter()).judge(text(), VECTOR[:16], None, []).level == "unknown"
