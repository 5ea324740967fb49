"""Topics of a store: clusters with the words that stand out in them, and the vectors nearest to their centres."""

import json

import numpy as np
import pytest

import stores
from unembed.auditing import WordReader
from unembed.auditing.topics import find_topics
from unembed.errors import VectorError

TEXTS = [f"the {who} {what}." for who in ("king", "old horse") for what in ("sleeps", "walks", "runs", "sings")]
TEXTS += ["we eat bread and soup."]


@pytest.fixture
def vectors(fake_encoder):
    return fake_encoder.encode(TEXTS)


@pytest.fixture
def reader(build_reader):
    return WordReader(build_reader("linear"), top=3)


def test_two_heaps_far_apart_are_two_topics(reader):
    random = np.random.default_rng(0)
    heaps = np.repeat([[5.0] + [0.0] * 15, [0.0] * 15 + [5.0]], [12, 8], axis=0) + random.normal(size=(20, 16)) * 0.1
    large, small = find_topics(reader, heaps.astype(np.float32), 2)
    assert (large.size, small.size) == (12, 8)
    assert set(large.nearest) <= set(range(12))
    assert set(small.nearest) <= set(range(12, 20))


def test_the_words_of_a_topic_are_those_that_its_vectors_name_more_often_than_others(reader):
    random = np.random.default_rng(0)
    heaps = np.repeat([[5.0] + [0.0] * 15, [0.0] * 15 + [5.0]], [12, 8], axis=0) + random.normal(size=(20, 16)) * 0.1
    heaps = heaps.astype(np.float32)
    named = reader.read(heaps)
    for topic, rows in zip(find_topics(reader, heaps, 2), (range(12), range(12, 20)), strict=True):
        inside = [word for row in rows for word in named.names_of(row)]
        outside = [word for row in set(range(20)) - set(rows) for word in named.names_of(row)]
        first = topic.words[0]
        assert inside.count(first) / len(rows) > outside.count(first) / (20 - len(rows))
        assert set(topic.words) <= set(inside)


def test_the_nearest_comes_first(reader, vectors):
    (topic,) = find_topics(reader, vectors, 1, nearest=len(vectors))
    centre = vectors.mean(0)
    assert topic.nearest == np.argsort(-(vectors @ centre), kind="stable").tolist()


def test_more_clusters_than_vectors_are_refused(reader, vectors):
    with pytest.raises(VectorError, match="9 vectors for 10 clusters"):
        find_topics(reader, vectors, 10)


def test_words_shows_topics_with_ids(run_cli, vectors, readout_checkpoint, tmp_path):
    uri = stores.qdrant(tmp_path / "store", vectors, TEXTS)
    options = ("words", uri, "--model", readout_checkpoint, "--clusters", 2)
    found = [json.loads(line) for line in run_cli(*options, "--json").out.splitlines()]
    assert sum(topic["size"] for topic in found) == len(TEXTS)
    assert found[0]["size"] >= found[1]["size"]
    assert all(topic["of"] == len(TEXTS) and topic["words"] and topic["nearest"] for topic in found)
    lines = run_cli(*options).out.splitlines()
    assert [line.split("nearest: ")[1].split(", ")[0] for line in lines] == [str(each["nearest"][0]) for each in found]


@pytest.mark.parametrize("option", [("--count",), ("--find", "king"), ("--output", "x.jsonl")])
def test_topics_are_no_list_of_vectors(run_cli, vectors, readout_checkpoint, tmp_path, option):
    uri = stores.npy(tmp_path / "store", vectors, TEXTS)
    ended = run_cli("words", uri, "--model", readout_checkpoint, "--clusters", 2, *option)
    assert ended.code == 2
    assert "--clusters shows topics" in ended.err


def test_too_many_clusters_name_the_flag(run_cli, vectors, readout_checkpoint, tmp_path):
    uri = stores.npy(tmp_path / "store", vectors, TEXTS)
    ended = run_cli("words", uri, "--model", readout_checkpoint, "--clusters", 99)
    assert ended.code == 2
    assert "Ask for fewer --clusters." in ended.err
