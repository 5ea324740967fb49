"""The whole audit with the real encoder, on every kind of store: five hundred sentences in, a report out.

The inverter is a fresh one with a readout fitted to the sentences, so it names words and writes no sentences: what is
tested here is the way from the store to the report, not how much comes back.
"""

import json

import numpy as np
import pytest
import torch

import stores
from unembed.canvas import CanvasVocabulary, fit_to_canvas, tokenizer_hash
from unembed.checkpoint import CheckpointInfo
from unembed.config import ModelConfig, NoiseConfig, ReadoutConfig
from unembed.inverter import Inverter
from unembed.lists import load_lines
from unembed.model import ConditionalMDLM

_LENGTH = 24
_NUMBERS = ("two", "three", "four", "five")


@pytest.fixture(scope="module")
def sentences():
    """Real sentences, and the same again about other numbers of things, to make five hundred."""
    real = load_lines("calibration")
    again = [f"{number.capitalize()} times: {text}" for number in _NUMBERS for text in real]
    return [*real, *again][:500]


@pytest.fixture(scope="module")
def vectors(sentences, minilm):
    return minilm.encode(sentences)


@pytest.fixture(scope="module")
def inverter_folder(sentences, vectors, minilm, tmp_path_factory):
    vocabulary = CanvasVocabulary.of(minilm.tokenizer)
    config = ModelConfig(
        embedding_dim=384,
        vocabulary_size=vocabulary.size,
        canvas_length=_LENGTH,
        layers=1,
        width=32,
        heads=2,
        feedforward=64,
        readout=ReadoutConfig(kind="linear"),
    )
    torch.manual_seed(0)
    model = ConditionalMDLM(config, vocabulary)
    ids, _, rows = fit_to_canvas(sentences, minilm.tokenizer, _LENGTH)
    tokens = torch.full((len(ids), _LENGTH), vocabulary.pad)
    for row, one in enumerate(ids):
        tokens[row, : len(one)] = torch.tensor(one)
    model.readout.fit(iter([(torch.from_numpy(vectors[rows]), tokens)]), ridge=0.001)
    info = CheckpointInfo(
        encoder=minilm.description,
        model=config,
        noise=NoiseConfig(),
        special_ids=vocabulary.special,
        tokenizer_hash=tokenizer_hash(minilm.tokenizer),
        training_rows=len(rows),
    )
    folder = tmp_path_factory.mktemp("inverter")
    Inverter(model.eval(), minilm.tokenizer, info).save_pretrained(folder)
    return folder


@pytest.fixture(autouse=True)
def loaded_once(minilm, monkeypatch):
    """Loading takes longer than anything else here."""
    monkeypatch.setattr("unembed.encoders.loading.load_encoder", lambda *arguments, **options: minilm)


def check(run_cli, uri, inverter_folder, output, *, texts):
    known = output.with_name("known.txt")
    known.write_text("\n".join(load_lines("calibration")[:24]) + "\n")
    options = ("--size", 16, "--guided", 0, "--bootstrap", 50, "--calibrate", known)
    ended = run_cli("audit", uri, "--model", inverter_folder, "--output", output, *options)
    assert ended.code in (0, 3, 4), ended.err
    report = json.loads((output / "report.json").read_text())
    assert report["source"]["vectors"] == 500
    assert report["source"]["texts"] == texts
    assert report["attacks"][0]["known"] == texts
    assert report["attacks"][0]["n"] == 16
    assert (report["calibration"] is None) == texts
    assert "What 500 stored vectors give away" in (output / "report.html").read_text()
    if texts:
        assert "gives the stored vector again for 16 of 16 stored texts" in report["encoder"]["because"]
    return report


@pytest.mark.parametrize("kind", ["chroma", "qdrant", "lancedb", "faiss"])
def test_a_store_on_disk_is_audited_and_left_as_it_was(kind, sentences, vectors, inverter_folder, run_cli, tmp_path):
    uri = stores.ON_DISK[kind](tmp_path / "store", vectors, sentences)
    before = stores.contents(tmp_path / "store")
    report = check(run_cli, uri, inverter_folder, tmp_path / "out", texts=kind != "faiss")
    assert stores.contents(tmp_path / "store") == before
    if kind == "chroma":
        assert report["encoder"]["certain"]
        assert "'default'" in report["encoder"]["because"]


def test_a_postgres_table_is_audited(sentences, vectors, inverter_folder, run_cli, postgres, tmp_path):
    uri = stores.to_postgres(postgres, "audited", "vector", vectors, sentences)
    check(run_cli, uri, inverter_folder, tmp_path / "out", texts=True)
    assert "secret%20" not in (tmp_path / "out" / "report.html").read_text()


@pytest.mark.parametrize("word", ["volcano", "invoice"])  # the encoder cuts the second into pieces
def test_words_of_a_chroma_store_are_found(word, sentences, vectors, inverter_folder, run_cli, tmp_path):
    uri = stores.chroma(tmp_path / "store", vectors, sentences)
    ended = run_cli("words", uri, "--model", inverter_folder, "--find", word, "--json")
    assert ended.code == 0, ended.err
    found = {json.loads(line)["id"] for line in ended.out.splitlines()}
    holding = {f"id-{row}" for row, text in enumerate(sentences) if word in text}
    assert len(holding & found) >= 4
    assert len(found - holding) < 0.4 * len(sentences)


def test_vectors_of_another_encoder_are_noticed(sentences, vectors, inverter_folder, run_cli, tmp_path):
    turned = vectors @ np.linalg.qr(np.random.default_rng(0).normal(size=(384, 384)))[0].astype(np.float32)
    uri = stores.parquet(tmp_path / "store", turned, sentences)
    ended = run_cli("audit", uri, "--model", inverter_folder, "--output", tmp_path / "out")
    assert ended.code == 2
    assert "These are not vectors of all-MiniLM-L6-v2" in ended.err
