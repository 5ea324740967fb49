"""Triage by subject: vectors near sensitive probes come first."""

import json

import numpy as np
import pytest

import stores
from unembed.auditing.probes import PROBES, Probe, load_probe, rank
from unembed.connectors.memory import vectors_of
from unembed.errors import ConfigError
from unembed.lists import load_lines

ABOUT = {
    "health": ["her cancer came back and she needs radiation", "which tablets help against arthritis pain"],
    "money": ["i still owe my landlord two months of rent", "the wages are paid into my checking account"],
    "credentials": ["the root password of the mail server was changed", "paste the secret api token here"],
    "minors": ["our eight year old son starts third grade", "the kids stay with their grandmother after school"],
}
OTHERS = [
    "the train to the coast was late",
    "we painted the fence green",
    "the band plays jazz",
    "how do bees make honey",
]
TEXTS = ["the king sleeps.", "a dog runs in the park.", "the girl reads a book.", "she drinks tea."] * 3


@pytest.mark.parametrize("name", PROBES)
def test_texts_about_a_subject_are_nearest_to_its_probe(name, minilm):
    texts = [text for each in ABOUT.values() for text in each] + OTHERS
    probe = Probe(load_probe(name), minilm)
    scores = probe.score(minilm.encode(texts))
    best = {texts[row] for row in np.argsort(-scores)[:2]}
    assert best == set(ABOUT[name])
    assert np.sort(scores)[-2] > probe.neutral > np.median(scores)


def test_ranking_does_not_depend_on_how_vectors_are_batched_or_scaled(fake_encoder):
    probe = Probe(TEXTS[:2], fake_encoder)
    vectors = fake_encoder.encode([f"{text} {number}" for number, text in enumerate(TEXTS)])
    whole = rank(vectors_of(vectors).records, probe, 5)
    parts = rank(vectors_of(7 * vectors, batch_rows=2).records, probe, 5)
    assert whole.rows == parts.rows
    assert whole.scores == pytest.approx(parts.scores)
    assert list(whole.scores) == sorted(whole.scores, reverse=True)
    assert (whole.seen, len(whole.rows)) == (12, 5)
    assert (whole.vectors == vectors[whole.rows]).all()
    assert whole.above == int((probe.score(vectors) > probe.neutral).sum())


def test_every_probe_has_sentences_of_its_own():
    sentences = [text for name in PROBES for text in load_probe(name)]
    assert len(sentences) == len(set(sentences))
    assert not set(sentences) & set(load_lines("calibration"))
    assert all(len(load_probe(name)) >= 20 for name in PROBES)


def test_a_probe_may_be_a_file_and_another_name_is_an_error(tmp_path):
    (tmp_path / "own.txt").write_text("one sentence\n\nanother sentence\n")
    assert load_probe(str(tmp_path / "own.txt")) == ["one sentence", "another sentence"]
    with pytest.raises(ConfigError, match="no probe 'helth', and no such file: did you mean 'health'"):
        load_probe("helth")
    (tmp_path / "empty.txt").write_text("\n")
    with pytest.raises(ConfigError):
        load_probe(str(tmp_path / "empty.txt"))


class TestCommand:
    @pytest.fixture(autouse=True)
    def with_encoder(self, fake_encoder, monkeypatch):
        monkeypatch.setattr("unembed.encoders.loading.load_encoder", lambda *arguments, **options: fake_encoder)

    def test_the_nearest_are_listed_and_the_first_are_inverted(
        self, run_cli, fake_encoder, readout_checkpoint, tmp_path
    ):
        uri = stores.jsonl(tmp_path / "store", fake_encoder.encode(TEXTS), TEXTS)
        (tmp_path / "dogs.txt").write_text("a dog runs in the park.\n")
        options = ("--model", readout_checkpoint, "--probe", tmp_path / "dogs.txt", "--most", 5, "--invert", 2)
        ended = run_cli("words", uri, *options, "--json")
        assert ended.code == 0, ended.err
        records = [json.loads(line) for line in ended.out.splitlines()]
        assert [record["rank"] for record in records] == [1, 2, 3, 4, 5]
        assert [record["row"] for record in records[:3]] == [1, 5, 9]
        assert {record["stored_text"] for record in records[:3]} == {"a dog runs in the park."}
        assert ["recovered" in record for record in records] == [True, True, False, False, False]
        assert len(records[0]["words"]) == 12
        assert "of 12 vectors lie nearer" in ended.err
        lines = run_cli("words", uri, *options).out.splitlines()
        assert len(lines) == 5
        assert lines[0].split("\t")[1] == str(records[0]["id"])

    def test_it_cannot_be_mixed_with_a_search(self, run_cli, fake_encoder, readout_checkpoint, tmp_path):
        uri = stores.npy(tmp_path / "store", fake_encoder.encode(TEXTS), TEXTS)
        ended = run_cli("words", uri, "--model", readout_checkpoint, "--probe", "health", "--find", "dog")
        assert ended.code == 2
        assert "--probe ranks all vectors" in ended.err
