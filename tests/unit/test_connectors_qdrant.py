"""Vectors of Qdrant: a folder that is read without its client, and a server."""

import json
import shutil
import sqlite3
from collections import Counter
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Event, Thread

import numpy as np
import pytest

import stores
from stores import EXPECTED, TEXTS, VECTORS, read
from unembed.connectors import open_vectors
from unembed.errors import VectorError


def test_code_hidden_in_a_qdrant_folder_does_not_run(tmp_path):
    import pickle

    uri = stores.qdrant(tmp_path / "store", VECTORS, TEXTS)
    (tmp_path / "witness").write_text("")

    class Harm:
        def __reduce__(self):
            return (shutil.rmtree, (str(tmp_path),))

    with sqlite3.connect(tmp_path / "store" / "collection" / "docs" / "storage.sqlite") as database:
        database.execute("UPDATE points SET point = ?", (pickle.dumps(Harm()),))
    with pytest.raises(VectorError, match="rmtree"):
        read(uri)
    assert (tmp_path / "witness").exists()


@pytest.mark.parametrize(
    "meta",
    [
        [],
        {},
        "text",
        {"collections": ["docs"]},
        {"collections": {"docs": None}},
        {"collections": {"docs": {"vectors": [8]}}},
        {"collections": {"docs": {"vectors": None}}},
        {"collections": {"../../other": {"vectors": {"size": 8}}}},
        {"collections": {"\0": {"vectors": {"size": 8}}}},
    ],
)
def test_an_odd_description_of_a_qdrant_folder_is_an_error(meta, tmp_path):
    stores.qdrant(tmp_path / "store", VECTORS, TEXTS)
    (tmp_path / "store" / "meta.json").write_text(json.dumps(meta))
    with pytest.raises(VectorError) as caught:
        read(f"qdrant:{tmp_path / 'store'}")
    assert caught.value.remedy


@pytest.mark.parametrize(
    ("state", "problem"),
    [
        ({}, "holds data that Qdrant does not write"),
        ({"id": 1, "vector": "text"}, "str instead of a list"),
        ({"id": 1, "vector": 3.0}, "float instead of a list"),
        ({"id": 1, "vector": ["a"] * 8}, "is not a list of numbers"),
        ({"id": 1, "vector": [[1.0] * 8] * 8}, "is not a list of numbers"),
        (b"not a pickle", "holds data that Qdrant does not write"),
        (b"\x80\x04\x8c\x02\xff\xff.", "holds data that Qdrant does not write"),
        (b"", "holds data that Qdrant does not write"),
        (None, "holds data that Qdrant does not write"),
    ],
)
def test_an_odd_point_of_a_qdrant_folder_is_an_error(state, problem, tmp_path):
    import pickle

    from qdrant_client import models

    uri = stores.qdrant(tmp_path / "store", VECTORS, TEXTS)
    point = models.PointStruct(id=0, vector=[1.0] * 8)
    if isinstance(state, dict):
        point.__dict__.clear()
        point.__dict__.update(state)
        state = pickle.dumps(point)
    with sqlite3.connect(tmp_path / "store" / "collection" / "docs" / "storage.sqlite") as database:
        database.execute("UPDATE points SET point = ?", (state,))
    with pytest.raises(VectorError, match=problem):
        read(uri)


@pytest.mark.parametrize("damage", ["missing", "folder", "text", "empty", "other table"])
def test_an_odd_database_of_a_qdrant_folder_is_an_error(damage, tmp_path):
    uri = stores.qdrant(tmp_path / "store", VECTORS, TEXTS)
    database = tmp_path / "store" / "collection" / "docs" / "storage.sqlite"
    database.unlink()
    if damage == "folder":
        database.mkdir()
    elif damage in ("text", "empty"):
        database.write_text("text " * 1000 if damage == "text" else "")
    elif damage == "other table":
        with sqlite3.connect(database) as other:
            other.execute("CREATE TABLE points (name text)")
            other.execute("INSERT INTO points VALUES ('a')")
    with pytest.raises(VectorError, match="cannot be read"):
        read(uri)


def test_a_qdrant_folder_is_read_while_its_client_holds_the_lock(tmp_path):
    from qdrant_client import QdrantClient

    uri = stores.qdrant(tmp_path / "store", VECTORS, TEXTS)
    client = QdrantClient(path=str(tmp_path / "store"))
    try:
        assert len(read(uri)[1]) == 40
    finally:
        client.close()


def test_a_named_vector_of_qdrant_is_chosen_by_column(tmp_path):
    from qdrant_client import QdrantClient, models

    client = QdrantClient(path=str(tmp_path / "store"))
    sizes = {"title": 8, "body": 4}
    vectors = {name: models.VectorParams(size=size, distance=models.Distance.DOT) for name, size in sizes.items()}
    client.create_collection("docs", vectors_config=vectors)
    client.upsert("docs", [models.PointStruct(id=1, vector={"title": [1.0] * 8, "body": [2.0] * 4})])
    client.upsert("docs", [models.PointStruct(id=2, vector={"title": [1.0] * 8})])
    client.close()
    skipped = Counter()
    source = open_vectors(f"qdrant:{tmp_path / 'store'}", column="body")
    assert [batch.ids for batch in source.usable(skipped)] == [["1"]]
    assert skipped["not finite"] == 1
    with pytest.raises(VectorError, match="several named vectors: body, title"):
        open_vectors(f"qdrant:{tmp_path / 'store'}")


class QdrantStandIn(BaseHTTPRequestHandler):
    """Answers the three questions that the connector asks, as Qdrant's REST interface does."""

    def log_message(self, *arguments):
        pass

    def do_GET(self):
        if self.path == "/collections":
            self.answer({"collections": [{"name": "docs"}]})
        else:
            parameters = {"vectors": {"size": 8, "distance": "Cosine", "datatype": "float16"}}
            config = {
                "params": parameters,
                "hnsw_config": {"m": 16, "ef_construct": 100, "full_scan_threshold": 10000},
                "optimizer_config": {
                    "deleted_threshold": 0.2,
                    "vacuum_min_vector_number": 1000,
                    "default_segment_number": 0,
                    "flush_interval_sec": 5,
                },
                "quantization_config": {"scalar": {"type": "int8"}},
            }
            self.answer(
                {
                    "status": "green",
                    "optimizer_status": "ok",
                    "segments_count": 1,
                    "config": config,
                    "payload_schema": {},
                }
            )

    def do_POST(self):
        if self.server.silent:
            self.server.woken.wait(20)
            return
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        if self.path.split("?")[0].endswith("/count"):
            self.answer({"count": self.server.counts.pop(0)})
            return
        start = body.get("offset") or 0
        end = min(start + body["limit"], 40)
        points = [
            {"id": row, "vector": VECTORS[row].tolist(), "payload": {"text": TEXTS[row]}} for row in range(start, end)
        ]
        self.answer({"points": points, "next_page_offset": end if end < 40 else None})

    def answer(self, result):
        allowed = self.headers.get("api-key") == "right"
        body = json.dumps({"result": result, "status": "ok", "time": 0.0} if allowed else {"status": {"error": "no"}})
        self.send_response(200 if allowed else 403)
        self.send_header("Content-Type", "application/json")
        self.end_headers()
        self.wfile.write(body.encode())


@pytest.fixture
def qdrant_server():
    server = ThreadingHTTPServer(("127.0.0.1", 0), QdrantStandIn)
    server.counts = [40, 40]
    server.silent, server.woken = False, Event()
    Thread(target=server.serve_forever, daemon=True).start()
    yield server, f"qdrant:http://127.0.0.1:{server.server_port}"
    server.woken.set()
    server.shutdown()


def test_a_qdrant_server_is_read_page_by_page(qdrant_server, monkeypatch):
    monkeypatch.setenv("QDRANT_API_KEY", "right")
    source, vectors, _, texts = read(f"{qdrant_server[1]}#docs")
    assert np.abs(vectors - VECTORS[EXPECTED]).max() < 1e-6
    assert texts == [TEXTS[row] for row in EXPECTED]
    assert source.rows == 40
    assert (source.storage.precision, source.storage.distance) == ("float16", "Cosine")
    assert source.storage.quantised == "for searching only (scalar)"


def test_a_qdrant_server_that_changes_while_it_is_read_is_an_error(qdrant_server, monkeypatch):
    monkeypatch.setenv("QDRANT_API_KEY", "right")
    qdrant_server[0].counts = [40, 41]
    with pytest.raises(VectorError, match="it had 40 points, and now has 41"):
        read(f"{qdrant_server[1]}#docs")


def test_a_qdrant_server_that_goes_away_midway_is_an_error(qdrant_server, monkeypatch):
    monkeypatch.setenv("QDRANT_API_KEY", "right")
    records = open_vectors(f"{qdrant_server[1]}#docs", batch_rows=8).records
    next(records)
    qdrant_server[0].shutdown()
    qdrant_server[0].server_close()
    with pytest.raises(VectorError, match="cannot be reached"):
        list(records)


def test_a_qdrant_server_that_does_not_answer_is_given_up(qdrant_server, monkeypatch):
    monkeypatch.setenv("QDRANT_API_KEY", "right")
    monkeypatch.setattr("unembed.connectors.qdrant._SECONDS", 1)
    qdrant_server[0].silent = True
    with pytest.raises(VectorError, match="cannot be reached: timed out"):
        open_vectors(f"{qdrant_server[1]}#docs")


def test_a_qdrant_server_refuses_wrong_credentials_with_a_remedy(qdrant_server, monkeypatch):
    monkeypatch.setenv("QDRANT_API_KEY", "wrong")
    with pytest.raises(VectorError, match="refuses these credentials") as caught:
        open_vectors(f"{qdrant_server[1]}#docs")
    assert "QDRANT_API_KEY" in caught.value.remedy


def test_a_qdrant_server_that_does_not_run_is_named():
    with pytest.raises(VectorError, match="cannot be reached"):
        open_vectors("qdrant:http://127.0.0.1:9#docs")


def test_a_key_for_qdrant_is_not_sent_over_plain_http_except_to_this_machine(monkeypatch):
    monkeypatch.setenv("QDRANT_API_KEY", "SECRET")
    with pytest.raises(VectorError, match="never sent over plain http") as caught:
        open_vectors("qdrant:http://database.example:6333#docs")
    assert "SECRET" not in str(caught.value)
    with pytest.raises(VectorError, match="http://localhost:1"):  # tried: nothing listens there
        open_vectors("qdrant:http://localhost:1#docs")
