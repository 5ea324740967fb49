"""Stores of vectors: each gives back what was put in, says how it keeps it, and is the same afterwards."""

import json
import shutil
import sqlite3
from collections import Counter
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread

import numpy as np
import pytest

import stores
from unembed.connectors import is_vector_uri, mask_passwords, open_vectors
from unembed.errors import MissingExtraError, VectorError

RANDOM = np.random.default_rng(0)
VECTORS = RANDOM.normal(size=(40, 8)).astype(np.float32)
TEXTS = [f"text number {row}" for row in range(40)]


def read(uri, **options):
    """All of a store, in the order of the first numbers of its vectors."""
    source = open_vectors(uri, batch_rows=16, **options)
    batches = list(source.usable(Counter()))
    vectors = np.concatenate([batch.vectors for batch in batches])
    ids = [one for batch in batches for one in batch.ids]
    texts = [one for batch in batches for one in batch.texts or [None] * len(batch)]
    order = np.argsort(vectors[:, 0])
    return source, vectors[order], [ids[row] for row in order], [texts[row] for row in order]


EXPECTED = np.argsort(VECTORS[:, 0])


@pytest.mark.parametrize("kind", stores.ON_DISK)
def test_a_store_gives_back_what_was_put_in_and_is_the_same_afterwards(kind, tmp_path):
    uri = stores.ON_DISK[kind](tmp_path / "store", VECTORS, TEXTS)
    before = stores.contents(tmp_path)
    source, vectors, ids, texts = read(uri)
    assert np.abs(vectors - VECTORS[EXPECTED]).max() < 1e-6
    assert source.rows in (40, None)
    assert len(set(ids)) == 40
    assert texts == [None if kind in stores.WITHOUT_TEXTS else TEXTS[row] for row in EXPECTED]
    assert stores.contents(tmp_path) == before


@pytest.mark.parametrize("kind", ["chroma", "qdrant", "lancedb"])
def test_a_store_is_the_same_after_it_was_read_only_in_part(kind, tmp_path):
    uri = stores.ON_DISK[kind](tmp_path / "store", VECTORS, TEXTS)
    before = stores.contents(tmp_path)
    source = open_vectors(uri, batch_rows=4).first(6)
    assert sum(map(len, source.batches)) == 6
    del source
    assert stores.contents(tmp_path) == before


def test_chroma_names_its_default_encoder_and_its_distance(tmp_path):
    kept = open_vectors(stores.chroma(tmp_path / "store", VECTORS, TEXTS)).storage
    assert kept.kind == "Chroma collection"
    assert (kept.encoder, kept.distance, kept.precision) == ("all-MiniLM-L6-v2", "l2", "float32")
    assert "'default'" in kept.encoder_said_by


def test_a_chroma_collection_beyond_what_its_log_holds_is_read_whole(tmp_path):
    # Chroma writes its index every thousand rows and then forgets its log; what is left lies in both.
    many = RANDOM.normal(size=(2300, 4)).astype(np.float32)
    uri = stores.chroma(tmp_path / "store", many, ["text"] * len(many))
    before = stores.contents(tmp_path)
    assert np.abs(read(uri)[1] - many[np.argsort(many[:, 0])]).max() < 1e-6
    assert stores.contents(tmp_path) == before


def test_a_chroma_store_that_keeps_changing_is_refused(tmp_path, monkeypatch):
    uri = stores.chroma(tmp_path / "store", VECTORS, TEXTS)
    copy = shutil.copyfile

    def copy_and_change(source, target, **options):
        copy(source, target)
        with Path(source).open("ab") as file:
            file.write(b"\0")

    monkeypatch.setattr(shutil, "copyfile", copy_and_change)
    with pytest.raises(VectorError, match="changed while it was read"):
        open_vectors(uri)


def test_a_chroma_folder_without_room_for_a_copy_says_where_room_is_needed(tmp_path, monkeypatch):
    uri = stores.chroma(tmp_path / "store", VECTORS, TEXTS)

    def full(source, target):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(shutil, "copyfile", full)
    with pytest.raises(VectorError, match="No space left") as caught:
        open_vectors(uri)
    assert "TMPDIR" in caught.value.remedy


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


@pytest.mark.parametrize("kind", ["Flat", "IDMap,Flat", "IVF4,Flat", "HNSW8", "SQ8", "IVF2,SQ8", "SQfp16"])
def test_a_faiss_index_gives_its_vectors_back(kind, tmp_path):
    vectors = RANDOM.normal(size=(400, 8)).astype(np.float32)
    uri = stores.faiss(tmp_path / "store", vectors, [], kind) if "IDMap" not in kind else id_map(tmp_path, vectors)
    before = stores.contents(tmp_path)
    source, found, ids, _ = read(uri)
    rows = np.array(ids) - (1000 if "IDMap" in kind else 0)
    assert sorted(rows) == list(range(400))
    assert np.abs(found - vectors[rows]).max() < (0.03 if "SQ" in kind else 1e-6)
    assert (source.storage.quantised is not None) == ("SQ" in kind)
    assert stores.contents(tmp_path) == before


def id_map(folder, vectors):
    import faiss

    index = faiss.index_factory(8, "IDMap,Flat")
    index.add_with_ids(vectors, np.arange(1000, 1000 + len(vectors)))
    faiss.write_index(index, str(folder / "index.faiss"))
    return f"faiss:{folder / 'index.faiss'}"


@pytest.mark.parametrize("kind", ["PQ4x4", "IVF2,PQ4x4", "OPQ4,IVF2,PQ4x4"])
def test_a_product_quantised_index_gives_back_what_its_codes_say(kind, tmp_path):
    vectors = RANDOM.normal(size=(400, 8)).astype(np.float32)
    source, found, ids, _ = read(stores.faiss(tmp_path / "store", vectors, [], kind))
    assert source.storage.quantised == "product quantisation, 4 codes of 4 bits"
    errors = np.linalg.norm(found - vectors[ids], axis=1)
    strangers = np.linalg.norm(found - vectors[np.roll(ids, 7)], axis=1)
    assert errors.mean() < 0.6 * strangers.mean()


@pytest.mark.parametrize(("kind", "precision"), [("vector", "float32"), ("real[]", "float32"), ("float8[]", "float64")])
def test_a_postgres_table_gives_back_what_was_put_in(kind, precision, postgres):
    table = f"docs_{kind.removesuffix('[]')}"
    uri = stores.to_postgres(postgres, table, kind, VECTORS, TEXTS)
    source, vectors, ids, texts = read(uri)
    assert np.abs(vectors - VECTORS[EXPECTED]).max() < 1e-6
    assert ids == [f"id-{row}" for row in EXPECTED]
    assert texts == [TEXTS[row] for row in EXPECTED]
    assert source.rows == 40
    assert source.storage.precision == precision
    assert "secret" not in source.name
    in_query = postgres.replace("auditor:secret%20%231@", "") + "?user=auditor&password=secret%20%231"
    assert "secret" not in open_vectors(f"pgvector:{in_query}#{table}").name
    assert open_vectors(f"{uri.partition('#')[0]}#public.{table}").rows == 40


def test_a_postgres_transaction_sees_one_moment(postgres):
    import psycopg

    uri = stores.to_postgres(postgres, "moment", "vector", VECTORS, TEXTS)
    source = open_vectors(uri, batch_rows=4)
    with psycopg.connect(postgres) as other:
        other.execute("DELETE FROM moment")
    assert sum(map(len, source.batches)) == 40


@pytest.mark.parametrize(
    "statement", ["DELETE FROM guarded", "UPDATE guarded SET content = ''", "CREATE TABLE x (y int)"]
)
def test_postgres_refuses_to_write_through_our_connection(statement, postgres, monkeypatch):
    import psycopg

    with psycopg.connect(postgres) as other:
        other.execute("DROP TABLE IF EXISTS guarded")
    uri = stores.to_postgres(postgres, "guarded", "real[]", VECTORS, TEXTS)
    connect, opened = psycopg.connect, []
    monkeypatch.setattr(
        psycopg, "connect", lambda *args, **options: opened.append(connect(*args, **options)) or opened[0]
    )
    open_vectors(uri)
    with pytest.raises(psycopg.errors.ReadOnlySqlTransaction):
        opened[0].execute(statement)
    opened[0].close()


def test_postgres_rows_of_mixed_dimensions_and_missing_ones_are_named(postgres):
    import psycopg

    uri = stores.to_postgres(postgres, "mixed", "real[]", VECTORS, TEXTS)
    with psycopg.connect(postgres) as other:
        other.execute("INSERT INTO mixed VALUES ('none', 'x', NULL), ('nan', 'y', '{1,NaN,1,1,1,1,1,1}')")
    skipped = Counter()
    assert sum(len(batch) for batch in open_vectors(uri).usable(skipped)) == 40
    assert skipped == {"not finite": 2, "all zeros": 0}
    with psycopg.connect(postgres) as other:
        other.execute("INSERT INTO mixed VALUES ('short', 'x', '{1,2}')")
    with pytest.raises(VectorError, match="row short has 2 numbers; row id-0 has 8"):
        read(uri)


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        (("secret", "wrong"), "password authentication failed"),
        (("/postgres", "/nowhere"), 'database "nowhere" does not exist'),
        (("127.0.0.1:", "127.0.0.1:1"), "cannot be opened"),
    ],
)
def test_a_postgres_that_does_not_open_says_why_without_the_password(change, problem, postgres):
    with pytest.raises(VectorError, match=problem) as caught:
        open_vectors(f"pgvector:{postgres.replace(*change)}#docs")
    assert "%20%231" not in str(caught.value)
    assert "PGPASSWORD" in caught.value.remedy


def test_a_postgres_table_that_is_not_there_is_named_with_its_neighbours(postgres):
    stores.to_postgres(postgres, "invoices", "vector", VECTORS, TEXTS)
    with pytest.raises(VectorError, match="no table 'invoice.embedding'") as caught:
        open_vectors(f"pgvector:{postgres}#invoice.embedding")
    assert "did you mean 'invoices.embedding'?" in caught.value.remedy


@pytest.mark.parametrize("kind", ["chroma", "qdrant", "lancedb"])
def test_a_missing_collection_is_named_with_its_neighbours(kind, tmp_path):
    uri = stores.ON_DISK[kind](tmp_path / "store", VECTORS, TEXTS)
    with pytest.raises(VectorError, match="has no (collection|table) 'dogs'") as caught:
        open_vectors(uri.replace("#docs", "#dogs"))
    assert "did you mean 'docs'?" in caught.value.remedy
    if kind != "lancedb":
        with pytest.raises(VectorError, match="several collections: docs, empty"):
            open_vectors(uri.partition("#")[0])


@pytest.mark.parametrize("uri", ["chroma:{}#a", "qdrant:{}#a", "lancedb:{}#a", "faiss:{}", "npy:{}", "{}"])
def test_a_store_that_is_not_there_is_an_error_and_is_not_made(uri, tmp_path):
    with pytest.raises(VectorError, match="There is no"):
        open_vectors(uri.format(tmp_path / "nowhere"))
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("kind", ["chroma", "qdrant"])
def test_an_empty_collection_has_no_batches(kind, tmp_path):
    uri = stores.ON_DISK[kind](tmp_path / "store", VECTORS, TEXTS)
    source = open_vectors(uri.replace("#docs", "#empty"))
    assert source.rows == 0
    assert list(source.batches) == []


@pytest.mark.parametrize("damaged", ["chroma.sqlite3", "meta.json", "index.faiss"])
def test_a_damaged_store_is_an_error_that_names_it(damaged, tmp_path):
    (tmp_path / damaged).write_bytes(b"not what it should be" * 100)
    kind = {"chroma.sqlite3": "chroma", "meta.json": "qdrant", "index.faiss": "faiss"}[damaged]
    with pytest.raises(VectorError, match="cannot be read"):
        open_vectors(f"{kind}:{tmp_path / damaged if kind == 'faiss' else tmp_path}")


def test_a_chroma_database_cannot_have_files_written_beside_its_copy(tmp_path, monkeypatch):
    uri = stores.chroma(tmp_path / "store", VECTORS, TEXTS)
    (tmp_path / "evil").mkdir()
    (tmp_path / "temporary").mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "temporary"))
    with sqlite3.connect(tmp_path / "store" / "chroma.sqlite3") as connection:
        docs = "(SELECT id FROM collections WHERE name = 'docs')"
        connection.execute(f"UPDATE segments SET id = '../evil' WHERE scope = 'VECTOR' AND collection = {docs}")
    connection.close()
    with pytest.raises(VectorError, match="cannot be read: badly formed"):
        open_vectors(uri)
    assert not (tmp_path / "temporary" / "evil").exists()


def test_rows_that_are_not_finite_or_zero_are_skipped_and_counted(tmp_path):
    vectors = VECTORS.copy()
    vectors[3, 2], vectors[5, 0], vectors[7] = np.nan, np.inf, 0.0
    uri = stores.npy(tmp_path / "store", vectors, TEXTS)
    skipped = Counter()
    kept = [one for batch in open_vectors(uri, batch_rows=16).usable(skipped) for one in batch.ids]
    assert kept == [row for row in range(40) if row not in (3, 5, 7)]
    assert skipped == {"not finite": 2, "all zeros": 1}


@pytest.mark.parametrize("kind", ["npy", "parquet", "jsonl", "faiss", "qdrant"])
def test_a_store_that_changes_while_it_is_read_is_an_error(kind, tmp_path):
    source = open_vectors(stores.ON_DISK[kind](tmp_path / "store", VECTORS, TEXTS), batch_rows=16)
    next(source.records)
    changed = max((path for path in tmp_path.rglob("*") if path.is_file()), key=lambda path: path.stat().st_size)
    with changed.open("ab") as file:
        file.write(b" ")
    with pytest.raises(VectorError, match="changed while it was read"):
        list(source.records)


def test_lancedb_names_the_encoder_of_its_own_registry(tmp_path):
    import lancedb
    import pyarrow

    functions = [
        {
            "name": "sentence-transformers",
            "model": {"name": "all-mpnet-base-v2"},
            "source_column": "text",
            "vector_column": "vector",
        }
    ]
    fields = [pyarrow.field("text", pyarrow.string()), pyarrow.field("vector", pyarrow.list_(pyarrow.float32(), 8))]
    schema = pyarrow.schema(fields, metadata={"embedding_functions": json.dumps(functions)})
    table = pyarrow.table({"text": TEXTS, "vector": pyarrow.array(VECTORS.tolist(), fields[1].type)}, schema=schema)
    lancedb.connect(tmp_path / "store").create_table("docs", table)
    assert open_vectors(f"lancedb:{tmp_path / 'store'}").storage.encoder == "all-mpnet-base-v2"


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
    Thread(target=server.serve_forever, daemon=True).start()
    yield server, f"qdrant:http://127.0.0.1:{server.server_port}"
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


def test_a_qdrant_server_refuses_wrong_credentials_with_a_remedy(qdrant_server, monkeypatch):
    monkeypatch.setenv("QDRANT_API_KEY", "wrong")
    with pytest.raises(VectorError, match="refuses these credentials") as caught:
        open_vectors(f"{qdrant_server[1]}#docs")
    assert "QDRANT_API_KEY" in caught.value.remedy


def test_a_qdrant_server_that_does_not_run_is_named():
    with pytest.raises(VectorError, match="cannot be reached"):
        open_vectors("qdrant:http://127.0.0.1:9#docs")


@pytest.mark.parametrize(
    ("name", "is_uri"), [("chroma:./db#a", True), ("npy:a.npy", True), ("faiss: a word", False), ("chroma", False)]
)
def test_an_address_is_told_from_a_text(name, is_uri):
    assert is_vector_uri(name) == is_uri


def test_a_folder_without_its_kind_gets_the_address_to_type(tmp_path):
    stores.chroma(tmp_path / "store", VECTORS, TEXTS)
    with pytest.raises(VectorError, match="is a folder") as caught:
        open_vectors(str(tmp_path / "store"))
    assert f"chroma:{tmp_path / 'store'}#COLLECTION" in caught.value.remedy


def test_a_missing_library_is_named_with_what_to_type(monkeypatch):
    monkeypatch.setattr("unembed.errors.find_spec", lambda name: None)
    with pytest.raises(MissingExtraError) as caught:
        open_vectors("chroma:./db#a")
    assert caught.value.remedy == "Run: pip install 'unembed[chroma]'"


SECRETS = ["SECRET", "SE CRET", "S'E\\C", "S@E:/C?", "SE''CRET", "ßé東", "S=E&C", "?password=SE", "a://b:c@d"]


@pytest.mark.parametrize("secret", SECRETS)
def test_no_form_of_a_password_is_shown(secret):
    from urllib.parse import quote

    escaped = secret.replace("\\", "\\\\").replace("'", "\\'")
    encoded = quote(secret, safe="")
    addresses = [
        f"pgvector:postgresql://me:{encoded}@host:5432/db#docs",
        f"pgvector:postgresql://me:{secret}@host/db#docs",
        f"pgvector:postgresql://:{encoded}@host/db",
        f"pgvector:postgresql://host/db?user=me&password={encoded}#docs",
        f"pgvector:postgresql://host/db?%70assword={encoded}&user=me",
        f"pgvector:postgresql://host/db?sslpassword={encoded}",
        f"pgvector:host=h password='{escaped}' dbname=db#docs",
        f"pgvector:password = '{escaped}' host = h",
        f"pgvector:host=h PASSWORD='{escaped}",
        f"pgvector:host=h password={escaped.replace(' ', chr(92) + ' ')} dbname=db",
        f"qdrant:https://host/?api_key={encoded}#docs",
    ]
    for address in addresses:
        masked = mask_passwords(address)
        assert "***" in masked, address
        for form in (secret, encoded, escaped):
            assert form not in masked, (address, masked)
        assert mask_passwords(masked) == masked
        assert masked.endswith("#docs") == address.endswith("#docs")


@pytest.mark.parametrize(
    "address",
    [
        "pgvector:postgresql://me@host:5432/db?passfile=/home/me/.pgpass&sslmode=require#docs.embedding",
        "pgvector:host=h user=me dbname=db#docs",
        "qdrant:http://localhost:6333#docs",
        "chroma:./db#notes",
        "npy:C:/vectors.npy",
    ],
)
def test_an_address_without_a_password_is_shown_as_it_is(address):
    assert mask_passwords(address) == address
