"""The paper's three encoders, as tiny models with random weights: our vectors are those of the real pipelines."""

import json
from pathlib import Path

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from sentence_transformers import SentenceTransformer
from sentence_transformers.sentence_transformer.modules import Pooling

from unembed.config import Recipe, load_recipe, parse
from unembed.encoders import load_encoder
from unembed.errors import ConfigError, EncoderError
from unembed.store import embed_texts

TRAIN = [
    f"the {what} {does} in the {where}."
    for what in ("cat", "old dog", "child", "bird")
    for does in ("sleeps", "sings", "runs")
    for where in ("park", "tree", "snow", "warm house")
]
VALIDATION = ["the cat sings in the snow.", "two dogs sleep.", "a red apple falls.", "the sun is warm", "birds!"]
TEXTS = [*VALIDATION, "the cat", "", "the dog runs in the park and the bird sings. " * 20]
CONFIGS = Path(__file__).parents[2] / "configs"


def library(folder) -> SentenceTransformer:
    return SentenceTransformer(str(folder), device="cpu")


def assert_same(ours, theirs):
    np.testing.assert_allclose(ours, theirs, atol=1e-5)


def assert_other(ours, theirs):
    """Wrong for most texts, not just for one: the median cosine is well below one."""
    assert np.median((ours * theirs).sum(1)) < 0.99


class TestQwen3:
    def test_documents_are_what_the_library_embeds_without_a_prompt(self, qwen3):
        encoder = load_encoder(str(qwen3), device="cpu")
        assert_same(encoder.encode(TEXTS, batch_size=4), library(qwen3).encode_document(TEXTS))
        description = encoder.description
        assert (description.pooling, description.dim, description.normalised) == ("lasttoken", 32, True)
        assert not description.prompt

    def test_queries_have_the_instruction(self, qwen3):
        encoder = load_encoder(str(qwen3), prompt=library(qwen3).prompts["query"], device="cpu")
        assert_same(encoder.encode(TEXTS), library(qwen3).encode_query(TEXTS))
        assert_other(encoder.encode(TEXTS), load_encoder(str(qwen3), device="cpu").encode(TEXTS))

    def test_a_mean_over_the_tokens_would_be_something_else(self, qwen3):
        wrong = library(qwen3)
        wrong[1] = Pooling(32, "mean")
        assert_other(load_encoder(str(qwen3), device="cpu").encode(TEXTS), wrong.encode(TEXTS))

    def test_the_last_token_is_the_end_token_wherever_a_batch_is_padded(self, qwen3):
        """The demo takes the last position of batches that are padded on the right: a padding token's state."""
        ours = load_encoder(str(qwen3), device="cpu").encode(TEXTS)
        model = library(qwen3)
        model.tokenizer.padding_side = "right"
        batch = model.tokenizer(TEXTS, padding=True, truncation=True, max_length=64, return_tensors="pt")
        with torch.no_grad():
            states = model[0].auto_model(**batch).last_hidden_state
        assert_other(ours, F.normalize(states[:, -1], dim=-1).numpy())
        last = batch["attention_mask"].sum(1) - 1
        assert_same(ours, F.normalize(states[torch.arange(len(TEXTS)), last], dim=-1).numpy())

    def test_without_the_end_token_it_would_be_something_else(self, qwen3):
        ours = load_encoder(str(qwen3), device="cpu").encode(VALIDATION)
        model = library(qwen3)
        batch = model.tokenizer(VALIDATION, padding=True, add_special_tokens=False, return_tensors="pt")
        with torch.no_grad():
            assert_other(ours, F.normalize(model[0].auto_model(**batch).last_hidden_state[:, -1], dim=-1).numpy())

    def test_vectors_can_be_cut_short_as_the_model_allows(self, qwen3):
        encoder = load_encoder(str(qwen3), truncate_dim=8, device="cpu")
        assert_same(encoder.encode(TEXTS), library(qwen3).encode_document(TEXTS, truncate_dim=8))
        assert (encoder.description.dim, encoder.description.truncate_dim) == (8, 8)
        assert not encoder.description.normalised
        with pytest.raises(ConfigError, match="gives 32 numbers, not 64"):
            load_encoder(str(qwen3), truncate_dim=64, device="cpu")

    def test_a_folder_without_its_modules_is_refused(self, qwen3, tmp_path):
        for name in ("config.json", "model.safetensors", "tokenizer.json", "tokenizer_config.json"):
            (tmp_path / name).write_bytes((qwen3 / name).read_bytes())
        with pytest.raises(EncoderError, match="no modules.json, so the last token"):
            load_encoder(str(tmp_path), device="cpu")


class TestEmbeddingGemma:
    def test_documents_are_what_the_library_embeds_with_the_document_prompt(self, gemma):
        encoder = load_encoder(str(gemma), device="cpu")
        assert encoder.description.prompt == "title: none | text: "
        assert_same(encoder.encode(TEXTS, batch_size=4), library(gemma).encode_document(TEXTS))
        without = load_encoder(str(gemma), prompt="", device="cpu")
        assert_same(without.encode(TEXTS), library(gemma).encode(TEXTS))
        assert_other(encoder.encode(TEXTS), without.encode(TEXTS))

    def test_without_the_dense_layers_it_would_be_something_else(self, gemma):
        model = library(gemma)
        wrong = SentenceTransformer(modules=[model[0], model[1], model[4]], device="cpu")
        assert_other(
            load_encoder(str(gemma), device="cpu").encode(TEXTS), wrong.encode(TEXTS, prompt="title: none | text: ")
        )


class TestJina:
    def reference(self, folder, task, prompt):
        """Return vectors by transformers' own classes, the adapter switched on rather than merged."""
        from transformers import AutoModel, AutoTokenizer

        model, tokenizer = AutoModel.from_pretrained(folder), AutoTokenizer.from_pretrained(folder)
        if task:
            model.load_adapter(str(folder / task), adapter_name=task)
            model.set_adapter(task)
        batch = tokenizer([prompt + text for text in TEXTS], padding=True, truncation=True, return_tensors="pt")
        with torch.no_grad():
            states = model.eval()(**batch).last_hidden_state
        mask = batch["attention_mask"][..., None]
        return F.normalize((states * mask).sum(1) / mask.sum(1), dim=-1).numpy()

    def test_documents_are_embedded_with_the_adapter_for_passages(self, jina):
        encoder = load_encoder(str(jina), device="cpu")
        prompt = "Represent the document for retrieval: "
        assert (encoder.description.task, encoder.description.prompt) == ("retrieval.passage", prompt)
        ours = encoder.encode(TEXTS, batch_size=4)
        assert_same(ours, self.reference(jina, "retrieval_passage", prompt))
        assert_other(ours, self.reference(jina, None, prompt))
        assert_other(ours, self.reference(jina, "separation", prompt))

    def test_another_task_has_another_adapter_and_prompt(self, jina):
        encoder = load_encoder(str(jina), task="text-matching", device="cpu")
        assert not encoder.description.prompt
        assert_same(encoder.encode(TEXTS), self.reference(jina, "text_matching", ""))

    def test_a_task_that_there_is_not_is_refused(self, jina, qwen3):
        with pytest.raises(EncoderError, match="has no task 'retrieval'") as caught:
            load_encoder(str(jina), task="retrieval", device="cpu")
        assert "retrieval." in caught.value.remedy
        with pytest.raises(ConfigError, match="does not support task"):
            load_encoder(str(qwen3), task="retrieval.passage", device="cpu")


@pytest.mark.parametrize("name", ["qwen3", "embeddinggemma", "jina-v3"])
def test_the_paper_s_recipe_takes_a_real_training_step(name, request, tmp_path):
    """The recipe as it is, but for the encoder's folder and all sizes."""
    folder = request.getfixturevalue({"embeddinggemma": "gemma", "jina-v3": "jina"}.get(name, name))
    encoder = load_encoder(str(folder), device="cpu")
    for split, texts in (("train", TRAIN), ("validation", VALIDATION)):
        embed_texts(texts.__iter__, tmp_path / "store" / split, encoder)
    values = load_recipe(CONFIGS / f"paper-{name}.yaml").model_dump()
    values["encoder"]["name"] = encoder.description.name
    values["data"] |= {"store": tmp_path / "store", "validation_rows": 4}
    values["model"] |= {"layers": 2, "width": 96, "feedforward": 192}
    values["training"] |= {
        "data_workers": 0,
        "free_running_rows": 2,
        "output": tmp_path / "run",
        "steps": 2,
        "warmup_steps": 1,
        "batch_size": 4,
        "milestones": (),
    }
    recipe = parse(Recipe, values, name)
    from unembed.training import train

    outcome = train(recipe, device="cpu")
    assert (outcome.step, outcome.reason) == (2, "finished")
    assert np.isfinite(outcome.metrics["elbo"])
    saved = json.loads((tmp_path / "run" / "latest" / "config.json").read_text())
    assert saved["encoder"]["name"] == folder.name
    assert len(saved["fingerprint"]["mean"]) == 32
