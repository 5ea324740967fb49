"""Vectors of Redis: hashes of a real server, and indexes and vector sets of a stand-in that speaks its protocol.

Debian's Redis has neither vector sets (Redis 8) nor a search engine with vectors. Where it is not installed, Valkey
takes its place.
"""

import json
from collections import Counter

import numpy as np
import pytest

import stores
from fakes import serving_redis
from stores import EXPECTED, TEXTS, VECTORS, read
from unembed.connectors import open_vectors
from unembed.errors import VectorError


@pytest.fixture(scope="module")
def server():
    with stores.running_redis() as address:
        yield address


@pytest.fixture
def client(server):
    import redis

    client = redis.Redis.from_url(server)
    client.flushall()
    return client


def fill(client, vectors=VECTORS, prefix="doc:"):
    for row, vector in enumerate(vectors):
        client.hset(f"{prefix}{row}", mapping={"text": TEXTS[row], "embedding": vector.tobytes(), "year": 2000 + row})
    client.set("a string", "x")


def state(client):
    """Every key and its content, and how many changes the server has counted."""
    keys = sorted(client.keys())
    return [client.dump(key) for key in keys], client.info("persistence")["rdb_changes_since_last_save"]


class TestHashes:
    def test_they_are_read_and_the_server_is_the_same_afterwards(self, server, client):
        fill(client)
        fill(client, VECTORS[:3], "other:")
        before = state(client)
        source, vectors, ids, texts = read(f"{server}#doc:*")
        assert np.abs(vectors - VECTORS[EXPECTED]).max() == 0
        assert ids == [f"doc:{row}" for row in EXPECTED]
        assert texts == [TEXTS[row] for row in EXPECTED]
        assert source.storage.kind == "Redis hashes"
        assert state(client) == before

    def test_a_prefix_needs_no_star_and_a_field_can_name_the_rows(self, server, client):
        fill(client)
        _, _, ids, _ = read(f"redis:{server}/0#doc:", id_column="year")
        assert ids == [str(2000 + row) for row in EXPECTED]

    def test_thousands_of_keys_are_read_a_part_at_a_time(self, server, client):
        pipeline = client.pipeline()
        for row in range(3000):
            pipeline.hset(f"many:{row}", mapping={"embedding": VECTORS[row % 40].tobytes()})
        pipeline.execute()
        ids = {name for batch in open_vectors(f"{server}#many:*", batch_rows=64).records for name in batch.ids}
        assert len(ids) == 3000

    def test_faults_are_counted_or_named(self, server, client):
        fill(client)
        client.hset("doc:3", "embedding", np.full(8, np.nan, np.float32).tobytes())
        client.hdel("doc:5", "embedding")
        skipped = Counter()
        assert sum(map(len, open_vectors(f"{server}#doc:*").usable(skipped))) == 38
        assert skipped == {"not finite": 2}
        client.hset("doc:7", "embedding", b"\0" * 8)
        with pytest.raises(VectorError, match="has (2|8) numbers"):
            list(open_vectors(f"{server}#doc:*").records)
        client.hset("doc:7", "embedding", b"odd")
        with pytest.raises(VectorError, match="key doc:7 holds no vector of float32 numbers"):
            list(open_vectors(f"{server}#doc:*").records)

    def test_what_is_not_there_is_an_error_with_a_remedy(self, server, client):
        for part, match in (("", "does not say which keys"), ("#doc:*", "no index, no vector set and no hash")):
            with pytest.raises(VectorError, match=match) as caught:
                open_vectors(f"{server}{part}")
            assert "redis://HOST#NAME" in caught.value.remedy

    def test_a_server_that_goes_away_midway_is_an_error(self):
        import redis

        with stores.running_redis() as address:
            fill(redis.Redis.from_url(address))
            records = open_vectors(f"{address}#doc:*", batch_rows=4).records
            next(records)
        with pytest.raises(VectorError, match="cannot be reached"):
            list(records)


def test_a_password_is_needed_and_comes_from_the_address_or_the_environment(monkeypatch):
    import redis

    with stores.running_redis("--requirepass", "secret") as address:
        fill(redis.Redis.from_url(address, password="secret"))
        for wrong in (address, address.replace("//", "//:wrong@")):
            with pytest.raises(VectorError, match="refuses these credentials") as caught:
                open_vectors(f"{wrong}#doc:*")
            assert "wrong" not in str(caught.value)
            assert "REDISCLI_AUTH" in caught.value.remedy
        source = open_vectors(f"{address.replace('//', '//:secret@')}#doc:*")
        assert sum(map(len, source.records)) == 40
        assert "secret" not in source.name
        monkeypatch.setenv("REDISCLI_AUTH", "secret")
        assert sum(map(len, open_vectors(f"{address}#doc:*").records)) == 40


def test_a_server_that_is_not_there_is_an_error():
    with pytest.raises(VectorError, match="cannot be reached"):
        open_vectors("redis://127.0.0.1:1#doc:*")


READING = {
    b"FT._LIST",
    b"FT.INFO",
    b"SCAN",
    b"HMGET",
    b"JSON.GET",
    b"TYPE",
    b"VINFO",
    b"VCARD",
    b"VRANGE",
    b"VEMB",
    b"VGETATTR",
}


class Search:
    """An index over hashes or JSON documents."""

    def __init__(self, in_json=False, form="FLOAT32"):
        self.in_json, self.form = in_json, form

    def __call__(self, command):
        name, *arguments = command
        if name == b"FT._LIST":
            return ["notes"]
        if name == b"FT.INFO":
            path = "$." if self.in_json else ""
            vector = ["identifier", f"{path}v", "attribute", "v", "type", "VECTOR", "algorithm", "HNSW"]
            vector += ["data_type", self.form, "dim", 8, "distance_metric", "COSINE"]
            text = ["identifier", f"{path}text", "attribute", "text", "type", "TEXT", "WEIGHT", "1"]
            definition = ["key_type", "JSON" if self.in_json else "HASH", "prefixes", ["doc[1]:"], "default_score", "1"]
            return [
                "index_name",
                "notes",
                "index_definition",
                definition,
                "attributes",
                [vector, text],
                "num_docs",
                "40",
            ]
        if name == b"SCAN":
            assert arguments[2] == rb"doc\[1\]:*"
            assert arguments[-1] == (b"ReJSON-RL" if self.in_json else b"hash")
            start = int(arguments[0])
            keys = [f"doc[1]:{row}" for row in range(start, min(start + 15, 40))]
            return [str(start + 15 if start + 15 < 40 else 0), keys]
        row = int(arguments[0].rpartition(b":")[2])
        if name == b"JSON.GET":
            return json.dumps({"$.v": [VECTORS[row].tolist()], "$.text": [TEXTS[row]]})
        assert name == b"HMGET"
        return [
            VECTORS[row].astype({"FLOAT32": "f4", "FLOAT64": "f8", "FLOAT16": "f2"}[self.form]).tobytes(),
            TEXTS[row],
        ]


class TestIndex:
    @pytest.mark.parametrize("in_json", [False, True])
    def test_its_documents_are_read_by_commands_that_only_read(self, in_json):
        with serving_redis(Search(in_json)) as (address, asked):
            source, vectors, ids, texts = read(address)
        assert np.abs(vectors - VECTORS[EXPECTED]).max() < 1e-6
        assert ids == [f"doc[1]:{row}" for row in EXPECTED]
        assert texts == [TEXTS[row] for row in EXPECTED]
        assert (source.rows, source.storage.distance) == (40, "cosine")
        assert {command[0] for command in asked} <= READING

    @pytest.mark.parametrize(("form", "error"), [("FLOAT64", 1e-6), ("FLOAT16", 2e-3)])
    def test_each_precision_is_read(self, form, error):
        with serving_redis(Search(form=form)) as (address, _):
            source, vectors, _, _ = read(f"{address}#notes")
        assert np.abs(vectors - VECTORS[EXPECTED]).max() < error
        assert source.storage.precision == form.lower()


class VectorSet:
    """A vector set, with attributes."""

    names = sorted(f"element {row}".encode() for row in range(40))

    def __call__(self, command):
        name, *arguments = command
        if name == b"FT._LIST":
            return Exception("ERR unknown command 'FT._LIST'")
        if name == b"TYPE":
            return "vectorset" if arguments == [b"set"] else "none"
        if name == b"VINFO":
            return ["quant-type", "int8", "vector-dim", 8, "size", 40]
        if name == b"VCARD":
            return 40
        if name == b"VRANGE":
            _, start, end, count = arguments
            assert end == b"+"
            return [each for each in self.names if start == b"-" or each > start.removeprefix(b"(")][: int(count)]
        row = int(arguments[1].rpartition(b" ")[2])
        if name == b"VEMB":
            return [repr(float(number)) for number in VECTORS[row]]
        assert name == b"VGETATTR"
        return None if row == 0 else json.dumps({"text": TEXTS[row]})


class TestVectorSet:
    def test_its_elements_are_read_in_order(self):
        with serving_redis(VectorSet()) as (address, asked):
            source, vectors, ids, texts = read(f"{address}#set")
        assert np.abs(vectors - VECTORS[EXPECTED]).max() < 1e-6
        assert ids == [f"element {row}" for row in EXPECTED]
        assert texts == [None if row == 0 else TEXTS[row] for row in EXPECTED]
        assert source.storage.quantised == "whole numbers of 8 bits"
        assert {command[0] for command in asked} <= READING

    def test_a_server_that_cannot_list_its_elements_says_so(self):
        fake = VectorSet()
        older = lambda command: Exception("ERR unknown command 'VRANGE'") if command[0] == b"VRANGE" else fake(command)  # noqa: E731
        with serving_redis(older) as (address, _), pytest.raises(VectorError, match="unknown command 'VRANGE'"):
            list(open_vectors(f"{address}#set").records)
