"""Vectors of Weaviate, Elasticsearch, OpenSearch and Pinecone, against stand-ins that speak their documented protocol.

No package has these servers, so what is tested is the protocol as it is documented, not the servers.
"""

import base64
import sys
from collections import Counter

import numpy as np
import pytest

from fakes import serving_json
from stores import EXPECTED, TEXTS, VECTORS, read
from unembed.connectors import open_vectors
from unembed.errors import VectorError

IDS = [f"00000000-0000-0000-0000-{row:012}" for row in range(40)]


class Weaviate:
    """Objects in the order of their ids, some at a time, after a cursor."""

    def __init__(self, vectors=VECTORS, named=None, tenants=False):
        self.vectors, self.named, self.tenants = [vector.tolist() for vector in vectors], named, tenants
        self.extra = 0

    def __call__(self, method, path, query, body):
        if path == "/v1/schema":
            index = {"distance": "cosine", "pq": {"enabled": True}}
            made = {"class": "Docs", "properties": [{"name": "text", "dataType": ["text"]}], "vectorIndexConfig": index}
            module = {"text2vec-transformers": {"model": "all-MiniLM-L6-v2"}}
            made |= {"vectorizer": "text2vec-transformers", "moduleConfig": module}
            if self.named:
                made["vectorConfig"] = {name: made | {"vectorizer": module} for name in self.named}
            if self.tenants:
                made["multiTenancyConfig"] = {"enabled": True}
            return {"classes": [made, {"class": "Other"}]}
        if path == "/v1/graphql":
            assert "Aggregate" in body["query"]
            assert ("tenant" in body["query"]) == self.tenants
            return {"data": {"Aggregate": {"Docs": [{"meta": {"count": len(self.vectors) + self.extra}}]}}}
        assert (method, path) == ("GET", "/v1/objects")
        assert query["class"] == ["Docs"]
        assert query["include"] == ["vector"]
        assert ("tenant" in query) == self.tenants
        (after,), (limit,) = query["after"], query["limit"]
        rows = [row for row, each in enumerate(IDS[: len(self.vectors)]) if each > after][: int(limit)]
        return {"objects": [self.object(row) for row in rows]}

    def object(self, row):
        made = {"id": IDS[row], "class": "Docs", "properties": {"text": TEXTS[row]}}
        if self.named:
            return made | {"vectors": dict.fromkeys(self.named, self.vectors[row])}
        return made | {"vector": self.vectors[row]}


class Elastic:
    """A scroll over an index."""

    def __init__(self, version="8.15.0", distribution=None, kind=None, vectors=VECTORS, fail_after=None, narrow=False):
        self.narrow = narrow  # a key that may read the index, and nothing else
        self.version = {"number": version} | ({"distribution": distribution} if distribution else {})
        self.kind = kind or {"type": "dense_vector", "dims": 8, "similarity": "cosine"}
        self.vectors, self.fail_after = [vector.tolist() for vector in vectors], fail_after
        self.open, self.pages, self.wanted = False, 0, None

    def __call__(self, method, path, query, body):
        if path == "/":
            return (403, {"error": "not allowed"}) if self.narrow else {"version": self.version}
        if path == "/_cat/indices":
            assert not self.narrow
            return [{"index": "docs"}, {"index": "other"}, {"index": ".security"}]
        if path in ("/docs/_mapping", "/current/_mapping"):
            nested = {"properties": {"vector": self.kind, "text": {"type": "text"}}}
            return {"docs": {"mappings": {"properties": {"passage": nested, "year": {"type": "long"}}}}}
        if path in ("/docs/_count", "/current/_count"):
            return {"count": len(self.vectors)}
        if path.endswith("/_mapping"):
            return 404, {"error": "index_not_found_exception"}
        if path in ("/docs/_search", "/current/_search"):
            if "exclude_vectors" in body["_source"] and self.version["number"] < "9.2":
                return 400, {"error": "unknown field [exclude_vectors]"}
            self.open, self.pages, self.wanted = True, 0, body
            return self.page()
        assert path == "/_search/scroll"
        assert body["scroll_id"] == "the scroll"
        if method == "DELETE":
            self.open = False
            return {"succeeded": True}
        return self.page()

    def page(self):
        size = self.wanted["size"]
        if self.fail_after is not None and self.pages >= self.fail_after:
            return 503, {"error": "gone"}
        start, self.pages = self.pages * size, self.pages + 1
        hits = [
            {"_id": f"id-{row}", "_source": {"passage": {"vector": self.vectors[row], "text": TEXTS[row]}}}
            for row in range(start, min(start + size, len(self.vectors)))
        ]
        if self.version["number"] >= "9.2" and self.wanted["_source"].get("exclude_vectors") is not False:
            for hit in hits:
                del hit["_source"]["passage"]["vector"]
        return {"_scroll_id": "the scroll", "_shards": {"failed": 0}, "hits": {"hits": hits}}


class Pinecone:
    """An index with two namespaces; ids are listed a page at a time, and fetched by their ids."""

    address = ""

    def __call__(self, method, path, query, body):
        if path == "/indexes":
            return {"indexes": [{"name": "docs", "metric": "cosine", "host": self.address, "embed": {"model": "e5"}}]}
        if path == "/describe_index_stats":
            return {"dimension": 8, "namespaces": {"": {"vectorCount": 40}, "other": {"vectorCount": 1}}}
        assert method == "GET"
        assert query["namespace"] == ["__default__"]
        if path == "/vectors/list":
            start = int(query.get("paginationToken", ["0"])[0])
            page = {"vectors": [{"id": f"id-{row}"} for row in range(start, min(start + 15, 40))]}
            return page | ({"pagination": {"next": str(start + 15)}} if start + 15 < 40 else {})
        assert path == "/vectors/fetch"
        rows = [int(each.removeprefix("id-")) for each in query["ids"]]
        return {
            "vectors": {
                f"id-{row}": {"id": f"id-{row}", "values": VECTORS[row].tolist(), "metadata": {"text": TEXTS[row]}}
                for row in rows
            }
        }


def check(uri, asked, allowed, ids):
    """The vectors, ids and texts are those that were put in, and nothing but reading was asked for."""
    source, vectors, names, texts = read(uri)
    assert np.abs(vectors - VECTORS[EXPECTED]).max() < 1e-6
    assert names == [ids[row] for row in EXPECTED]
    assert texts == [TEXTS[row] for row in EXPECTED]
    assert source.rows == 40
    assert set(asked) <= set(allowed)
    return source


class TestWeaviate:
    ALLOWED = ("GET /v1/schema", "POST /v1/graphql", "GET /v1/objects")

    def test_a_collection_is_read_page_by_page(self):
        with serving_json(Weaviate()) as (address, asked):
            source = check(f"weaviate:{address}#Docs", asked, self.ALLOWED, IDS)
        assert asked.count("GET /v1/objects") == 4
        assert source.storage.encoder == "all-MiniLM-L6-v2"
        assert source.storage.distance == "cosine"
        assert source.storage.quantised == "for searching only (pq)"

    def test_a_named_vector_is_chosen_and_a_tenant_named(self):
        with serving_json(Weaviate(named=["title", "body"], tenants=True)) as (address, _):
            with pytest.raises(VectorError, match="has tenants"):
                open_vectors(f"weaviate:{address}#Docs")
            with pytest.raises(VectorError, match="several named vectors: body, title"):
                open_vectors(f"weaviate:{address}#Docs@acme")
            source, vectors, _, _ = read(f"weaviate:{address}#Docs@acme", column="body")
        assert np.abs(vectors - VECTORS[EXPECTED]).max() < 1e-6
        assert source.storage.encoder == "all-MiniLM-L6-v2"

    def test_a_collection_that_changes_is_an_error(self):
        fake = Weaviate()
        with serving_json(fake) as (address, _):
            source = open_vectors(f"weaviate:{address}#Docs", batch_rows=16)
            next(source.records)
            fake.extra = 1
            with pytest.raises(VectorError, match="it had 40 objects, and now has 41"):
                list(source.records)

    def test_objects_without_a_vector_are_counted_and_mixed_dimensions_are_an_error(self):
        fake = Weaviate()
        fake.vectors[3] = None
        skipped = Counter()
        with serving_json(fake) as (address, _):
            assert sum(map(len, open_vectors(f"weaviate:{address}#Docs").usable(skipped))) == 39
            fake.vectors[5] = [1.0]
            with pytest.raises(VectorError, match="has 1 numbers"):
                list(open_vectors(f"weaviate:{address}#Docs").records)
        assert skipped == {"not finite": 1}

    def test_an_empty_collection_has_no_batches(self):
        with serving_json(Weaviate(vectors=VECTORS[:0])) as (address, _):
            assert list(open_vectors(f"weaviate:{address}#Docs").records) == []


class TestElasticsearch:
    ALLOWED = (
        *("GET /", "GET /_cat/indices", "GET /docs/_mapping", "GET /docs/_count"),
        *("POST /docs/_search", "POST /_search/scroll", "DELETE /_search/scroll"),
    )
    IDS = tuple(f"id-{row}" for row in range(40))

    @pytest.mark.parametrize("version", ["7.17.0", "8.15.0", "9.2.1"])
    def test_an_index_is_read_and_the_scroll_is_closed(self, version):
        fake = Elastic(version)
        with serving_json(fake) as (address, asked):
            source = check(f"elasticsearch:{address}#docs", asked, self.ALLOWED, self.IDS)
        assert not fake.open
        assert source.storage.kind == "Elasticsearch index"
        assert (source.storage.precision, source.storage.distance) == ("float32", "cosine")
        assert fake.wanted["_source"]["includes"] == ["passage.vector", "passage.text"]

    def test_opensearch_has_its_own_type_and_says_how_it_compares(self):
        method = {"name": "hnsw", "space_type": "innerproduct"}
        kind = {"type": "knn_vector", "dimension": 8, "data_type": "byte", "method": method}
        with serving_json(Elastic("2.17.0", "opensearch", kind)) as (address, asked):
            source = check(f"opensearch:{address}#docs", asked, self.ALLOWED, self.IDS)
        assert source.storage.kind == "OpenSearch index"
        assert (source.storage.precision, source.storage.distance) == ("int8", "innerproduct")

    @pytest.mark.parametrize("version", ["8.15.0", "9.2.1"])
    def test_a_key_for_one_index_is_enough(self, version):
        with serving_json(Elastic(version, narrow=True)) as (address, asked):
            check(f"elasticsearch:{address}#docs", asked, self.ALLOWED, self.IDS)

    def test_an_alias_is_read_like_an_index(self):
        with serving_json(Elastic()) as (address, _):
            assert len(read(f"elasticsearch:{address}#current")[1]) == 40

    def test_the_scroll_is_closed_when_only_a_part_is_read(self):
        fake = Elastic()
        with serving_json(fake) as (address, _):
            records = open_vectors(f"elasticsearch:{address}#docs", batch_rows=8).records
            next(records)
            assert fake.open
            records.close()
            assert not fake.open

    def test_a_server_that_goes_away_midway_is_an_error(self):
        fake = Elastic(fail_after=1)
        with serving_json(fake) as (address, _):
            source = open_vectors(f"elasticsearch:{address}#docs", batch_rows=8)
            next(source.records)
            with pytest.raises(VectorError, match="answers 503"):
                list(source.records)

    def test_bits_are_no_vectors_and_quantisation_is_said(self):
        kind = {"type": "dense_vector", "element_type": "bit"}
        with serving_json(Elastic(kind=kind)) as (address, _), pytest.raises(VectorError, match="no field that holds"):
            open_vectors(f"elasticsearch:{address}#docs")
        kind = {"type": "dense_vector", "index_options": {"type": "int8_hnsw"}}
        with serving_json(Elastic(kind=kind)) as (address, _):
            source = open_vectors(f"elasticsearch:{address}#docs")
        assert source.storage.quantised == "for searching only (int8_hnsw)"


class TestPinecone:
    ALLOWED = ("GET /indexes", "POST /describe_index_stats", "GET /vectors/list", "GET /vectors/fetch")
    IDS = tuple(f"id-{row}" for row in range(40))

    @pytest.fixture(autouse=True)
    def key(self, monkeypatch):
        monkeypatch.setenv("PINECONE_API_KEY", "secret")

    def test_an_index_is_found_by_its_name_and_read(self, monkeypatch):
        fake = Pinecone()
        with serving_json(fake, ("Api-Key", "secret")) as (address, asked):
            fake.address = address
            monkeypatch.setenv("PINECONE_CONTROLLER_HOST", address)
            source = check("pinecone:docs#__default__", asked, self.ALLOWED, self.IDS)
            with pytest.raises(VectorError, match="has no index 'dogs'"):
                open_vectors("pinecone:dogs")
            with pytest.raises(VectorError, match="several namespaces: __default__, other"):
                open_vectors("pinecone:docs")
        assert source.storage.encoder == "e5"
        assert source.storage.distance == "cosine"

    def test_a_host_needs_no_name(self):
        with serving_json(Pinecone(), ("Api-Key", "secret")) as (address, asked):
            check(f"pinecone:{address}#__default__", asked, self.ALLOWED[1:], self.IDS)

    def test_without_a_key_nothing_is_asked(self, monkeypatch):
        monkeypatch.delenv("PINECONE_API_KEY")
        with serving_json(Pinecone()) as (address, asked), pytest.raises(VectorError, match="needs a key"):
            open_vectors(f"pinecone:{address}#__default__")
        assert asked == []


KINDS = {
    "weaviate": (Weaviate, "WEAVIATE_API_KEY", ("Authorization", "Bearer secret"), "#Docs"),
    "elasticsearch": (Elastic, "ELASTIC_API_KEY", ("Authorization", "ApiKey secret"), "#docs"),
    "pinecone": (Pinecone, "PINECONE_API_KEY", ("Api-Key", "secret"), "#__default__"),
}


@pytest.mark.parametrize("kind", KINDS)
class TestEveryServer:
    def test_a_key_is_sent_and_a_wrong_one_is_refused_with_a_remedy(self, kind, monkeypatch):
        fake, variable, header, part = KINDS[kind]
        with serving_json(fake(), header) as (address, _):
            monkeypatch.setenv(variable, "secret")
            assert len(read(f"{kind}:{address}{part}")[1]) == 40
            monkeypatch.setenv(variable, "wrong")
            with pytest.raises(VectorError, match=r"refuses these credentials \(401\)") as caught:
                open_vectors(f"{kind}:{address}{part}")
        assert variable in caught.value.remedy

    def test_a_key_is_never_sent_over_plain_http(self, kind, monkeypatch):
        monkeypatch.setenv(KINDS[kind][1], "secret")
        with pytest.raises(VectorError, match="is plain http") as caught:
            open_vectors(f"{kind}:http://db.example.org:1{KINDS[kind][3]}")
        assert "secret" not in str(caught.value)

    def test_a_missing_collection_is_named_with_its_neighbours(self, kind, monkeypatch):
        fake, variable, _, part = KINDS[kind]
        monkeypatch.setenv(variable, "secret")
        with (
            serving_json(fake()) as (address, _),
            pytest.raises(VectorError, match=f"has no .* '{part[1:-1]}x'") as caught,
        ):
            open_vectors(f"{kind}:{address}{part[:-1]}x")
        assert "did you mean" in caught.value.remedy

    def test_a_server_that_is_not_there_is_an_error(self, kind, monkeypatch):
        monkeypatch.setenv(KINDS[kind][1], "secret")
        with pytest.raises(VectorError, match="cannot be reached"):
            open_vectors(f"{kind}:http://127.0.0.1:1{KINDS[kind][3]}")

    def test_a_server_that_does_not_answer_is_given_up(self, kind, monkeypatch):
        import socket

        monkeypatch.setattr("unembed.connectors.http.SECONDS", 0.2)
        monkeypatch.setenv(KINDS[kind][1], "secret")
        with socket.create_server(("127.0.0.1", 0)) as silent:
            port = silent.getsockname()[1]
            with pytest.raises(VectorError, match="did not answer within 0.2 seconds"):
                open_vectors(f"{kind}:http://127.0.0.1:{port}{KINDS[kind][3]}")

    def test_a_busy_server_is_asked_again(self, kind, monkeypatch):
        fake, variable, _, part = KINDS[kind]
        monkeypatch.setenv(variable, "secret")
        served, turns = fake(), Counter()

        def busy(method, path, query, body):
            turns[path] += 1
            return (429, {"error": "slow down"}) if turns[path] == 1 else served(method, path, query, body)

        with serving_json(busy) as (address, _):
            assert len(read(f"{kind}:{address}{part}")[1]) == 40

    @pytest.mark.parametrize("answer", [(200, b"<html>"), (500, b"\x1b[31m broken"), (404, b"")])
    def test_another_server_is_an_error(self, kind, answer, monkeypatch):
        monkeypatch.setenv(KINDS[kind][1], "secret")
        with serving_json(lambda *_: answer) as (address, _), pytest.raises(VectorError) as caught:
            open_vectors(f"{kind}:{address}{KINDS[kind][3]}")
        assert "\x1b" not in str(caught.value)
        assert caught.value.remedy


def test_a_password_in_an_address_is_sent_and_not_shown():
    basic = base64.b64encode(b"me:secret").decode()
    with serving_json(Elastic(), ("Authorization", f"Basic {basic}")) as (address, _):
        source = open_vectors(f"elasticsearch:{address.replace('//', '//me:secret@')}#docs")
        assert sum(map(len, source.records)) == 40
    assert "secret" not in source.name


def test_a_run_that_a_server_ended_is_continued_when_it_is_back(
    run_cli, fake_encoder, readout_checkpoint, tmp_path, monkeypatch
):
    monkeypatch.setattr(sys.modules["unembed.cli.words"], "_BATCH", 8)
    monkeypatch.setattr("unembed.connectors.http._TRIES", 1)
    fake = Elastic(vectors=fake_encoder.encode(TEXTS), fail_after=2)
    with serving_json(fake) as (address, _):
        options = (f"elasticsearch:{address}#docs", "--model", readout_checkpoint, "--output")
        ended = run_cli("words", *options, tmp_path / "part.jsonl")
        assert ended.code == 2
        assert "answers 503" in ended.err
        assert len((tmp_path / "part.jsonl").read_text().splitlines()) == 16
        fake.fail_after = None
        assert run_cli("words", *options, tmp_path / "part.jsonl", "--resume").code == 0
        assert run_cli("words", *options, tmp_path / "whole.jsonl").code == 0
    assert (tmp_path / "part.jsonl").read_text() == (tmp_path / "whole.jsonl").read_text()
    assert len((tmp_path / "whole.jsonl").read_text().splitlines()) == 40
