"""``unembed.audit``: one call from Python, for vectors wherever they are."""

import re

import numpy as np
import pandas
import pyarrow
import pytest
import torch

import stores
import unembed
from stores import TEXTS, VECTORS
from unembed.connectors.memory import vectors_of
from unembed.errors import EncoderError, VectorError
from unembed.report import to_json

SENTENCES = [f"the {who} {what}." for who in ("king", "cat", "dog", "girl") for what in ("sleeps", "runs", "reads")]


@pytest.fixture
def vectors(fake_encoder):
    return fake_encoder.encode(SENTENCES)


@pytest.fixture
def audit(tiny_checkpoint, fake_encoder):
    """Audits with the tiny inverter, and with its encoder, which no name can load."""

    def audit(source, **options):
        options = {"encoder": fake_encoder, "guided": 0, "bootstrap": 20, "device": "cpu"} | options
        return unembed.audit(source, model=tiny_checkpoint, **options)

    return audit


def comparable(result):
    """An audit without what differs from run to run."""
    plain = to_json(result) | {"made": "", "command": "", "source": ""}
    for attack in plain["attacks"]:
        attack["seconds_per_vector"] = 0
        for row in attack["rows"]:
            row |= {"seconds": 0, "id": ""}
    for example in (example for attack in plain["attacks"] for example in attack["worst"] + attack["borderline"]):
        example.pop("row")
    return plain


def test_a_store_and_the_same_vectors_in_memory_give_the_same_audit(audit, vectors, tmp_path):
    uri = stores.jsonl(tmp_path / "store", vectors, SENTENCES)
    before = stores.contents(tmp_path)
    stored = audit(uri, size=None)
    frame = pandas.DataFrame({"text": SENTENCES, "embedding": list(vectors)})
    assert stored.source.vectors == stored.sample == len(SENTENCES)
    assert stored.attacks[0].known
    for source, options in (
        (vectors, {"texts": SENTENCES}),
        (torch.from_numpy(vectors), {"texts": SENTENCES}),
        (frame, {}),
        (pyarrow.Table.from_pandas(frame), {}),
    ):
        figures = audit(source, size=None, **options).attacks[0].figures
        assert figures["passage_recall"].value == pytest.approx(stored.attacks[0].figures["passage_recall"].value)
        assert figures["readable"].n == len(SENTENCES)
    assert stores.contents(tmp_path) == before


def test_the_same_seed_gives_the_same_audit(audit, vectors):
    one, other = (comparable(audit(vectors, texts=SENTENCES, size=8, seed=3)) for _ in range(2))
    assert one == other


def test_progress_is_told_as_it_is_made(audit, vectors):
    told, rows, sentences = [], [], []
    audit(
        vectors,
        texts=SENTENCES,
        size=10,
        on_progress=lambda label, done, total: told.append((label, done, total)),
        on_rows=lambda attacker, so_far, total: rows.append((attacker, len(so_far), total)),
        on_encoder=sentences.append,
    )
    read = [(done, total) for label, done, total in told if label == "Reading the vectors"]
    assert sum(done for done, _ in read) == len(SENTENCES)
    assert rows[-1] == ("blind", 10, 10)
    assert "fake" in sentences[0]


def test_a_notebook_shows_a_table_that_nothing_can_be_injected_into(audit, vectors):
    frame = pandas.DataFrame({"id": ["<script>"] * len(vectors), "text": SENTENCES, "embedding": list(vectors)})
    result = audit(frame)
    html = result._repr_html_()
    assert "<table>" in html
    assert "blind, measured" in html
    assert f"{len(SENTENCES)} vectors" in html
    assert not re.search(r"<script|src=|href=|https?:", html)


def test_what_is_done_can_be_continued_from_its_folder(audit, vectors, tmp_path, monkeypatch):
    monkeypatch.setattr("unembed.auditing.recover._PART", {"blind": 3, "guided": 1})
    done = []
    stopped = audit(
        vectors,
        texts=SENTENCES,
        folder=tmp_path / "parts",
        on_rows=lambda attacker, rows, total: done.append(len(rows)),
        interrupted=lambda: len(done) > 0,
    )
    assert stopped.sample < stopped.wanted
    whole = audit(vectors, texts=SENTENCES, folder=tmp_path / "parts")
    assert whole.sample == whole.wanted == len(SENTENCES)
    assert list((tmp_path / "parts").iterdir()) == []


def test_without_texts_and_without_the_encoder_it_says_what_is_needed(audit, vectors):
    with pytest.raises(EncoderError, match="holds no texts, and the encoder fake is not available"):
        audit(vectors, encoder=None)


class TestInMemory:
    def gathered(self, source, **options):
        batches = list(vectors_of(source, batch_rows=16, **options).batches)
        assert max(map(len, batches)) <= 16
        return np.concatenate(batches)

    def test_each_kind_gives_the_vectors_back(self, tmp_path):
        import datasets

        frame = pandas.DataFrame({"name": TEXTS, "v": list(VECTORS)})
        dataset = datasets.Dataset.from_dict({"text": TEXTS, "embedding": VECTORS.tolist()})
        for source in (VECTORS, VECTORS.astype(np.float64), torch.from_numpy(VECTORS), VECTORS.tolist(), frame):
            assert np.abs(self.gathered(source) - VECTORS).max() < 1e-6
        assert np.abs(self.gathered(dataset) - VECTORS).max() < 1e-6
        chosen = dataset.select(range(39, -1, -3))
        assert np.abs(self.gathered(chosen) - VECTORS[::-3]).max() < 1e-6

    def test_a_frame_names_its_rows_and_counts_missing_vectors(self):
        frame = pandas.DataFrame(
            {"id": list("abc"), "text": ["one", None, "three"], "v": [[1.0, 2.0], None, [3.0, 4.0]]}
        )
        (batch,) = vectors_of(frame).records
        assert batch.ids == ["a", "b", "c"]
        assert list(batch.texts) == ["one", None, "three"]
        assert np.isnan(batch.vectors[1]).all()

    @pytest.mark.parametrize(
        ("source", "options", "match"),
        [
            ([[1.0, 2.0], [1.0]], {}, "no array of vectors"),
            (np.ones(3), {}, "no array of vectors"),
            (np.array([["a"]]), {}, "no array of vectors"),
            (42, {}, "no array of vectors"),
            (VECTORS, {"texts": ["one"]}, "40 vectors and 1 texts"),
            (VECTORS, {"column": "v"}, "An array has no columns"),
            (pandas.DataFrame({"v": [1, 2]}), {}, "no field that holds a list of numbers"),
            (pandas.DataFrame({"v": [[1.0]]}), {"texts": ["one"]}, "`texts` are for an array"),
            (pandas.DataFrame({"v": [[1.0], [1.0, 2.0]]}), {}, "has 2 numbers; row 0 has 1"),
        ],
    )
    def test_what_is_no_vectors_is_refused(self, source, options, match):
        with pytest.raises(VectorError, match=match):
            list(vectors_of(source, **options).records)
