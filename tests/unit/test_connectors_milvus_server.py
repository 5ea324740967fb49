"""Vectors of a real Milvus, started here: a package of PyPI has its program. It is an older one, 2.3."""

import signal

import pytest

import stores
from stores import EXPECTED, TEXTS, VECTORS, read
from unembed.connectors import open_vectors
from unembed.errors import VectorError

pytest.importorskip("milvus", reason="no Milvus")
_TOKEN = "root:Milvus"


@pytest.fixture(scope="module")
def server():
    with stores.running_milvus_server(authorization_enabled=True) as started:
        stores.fill_milvus(started[1], VECTORS, TEXTS, token=_TOKEN)
        yield started


@pytest.fixture(autouse=True)
def known_to_it(monkeypatch):
    monkeypatch.setenv("MILVUS_TOKEN", _TOKEN)


@pytest.fixture
def client(server):
    from pymilvus import MilvusClient

    client = MilvusClient(server[1], token=_TOKEN)
    yield client
    client.close()


def state(client):
    """All that the server holds, and what is loaded."""
    rows = client.query("docs", filter="id != ''", output_fields=["*"], consistency_level="Strong")
    held = sorted((row["id"], row["text"], list(row["embedding"])) for row in rows)
    names = sorted(client.list_collections())
    described = {name: (client.describe_collection(name), client.list_indexes(name)) for name in names}
    return held, str(described), {name: str(client.get_load_state(name)) for name in names}


def test_rows_that_are_not_yet_on_its_disk_are_read_and_it_is_the_same_afterwards(server, client):
    before = state(client)
    source, vectors, ids, texts = read(f"milvus:{server[1]}#docs")
    assert (vectors == VECTORS[EXPECTED]).all()
    assert ids == [f"id-{row}" for row in EXPECTED]
    assert texts == [TEXTS[row] for row in EXPECTED]
    assert source.rows == 40
    assert (source.storage.precision, source.storage.distance) == ("float32", "cosine")
    assert state(client) == before


def test_a_missing_collection_and_an_empty_one(server):
    with pytest.raises(VectorError, match="has no collection 'dogs'"):
        open_vectors(f"milvus:{server[1]}#dogs")
    assert list(open_vectors(f"milvus:{server[1]}#empty").records) == []


@pytest.mark.parametrize("token", ["", "root:wrong"])
def test_wrong_credentials_have_a_remedy_and_print_nothing_else(token, server, run_cli, tmp_path, monkeypatch):
    monkeypatch.setenv("MILVUS_TOKEN", token)
    ended = run_cli("audit", f"milvus:{server[1]}#docs", "--output", tmp_path)
    assert ended.code == 2
    assert "refuses these credentials" in ended.err
    assert "MILVUS_TOKEN" in ended.err
    assert "Traceback" not in ended.err


def test_a_collection_that_is_not_loaded_is_an_error_and_is_not_loaded(server, client):
    client.release_collection("docs")
    try:
        with pytest.raises(VectorError, match="is not loaded"):
            open_vectors(f"milvus:{server[1]}#docs")
        assert "NotLoad" in str(client.get_load_state("docs"))
    finally:
        client.load_collection("docs")


def test_rows_that_are_added_meanwhile_are_not_read(server, client):
    pages = iter(open_vectors(f"milvus:{server[1]}#docs", batch_rows=8).records)
    read_so_far = len(next(pages))
    client.insert("docs", [{"id": "zzz", "text": "new", "embedding": VECTORS[0].tolist()}])
    try:
        assert read_so_far + sum(map(len, pages)) == 40
    finally:
        client.delete("docs", ids=["zzz"])


def test_a_server_that_does_not_answer_is_given_up(server, monkeypatch):
    monkeypatch.setattr("unembed.connectors.milvus._SECONDS", 2)
    pages = iter(open_vectors(f"milvus:{server[1]}#docs", batch_rows=8).records)
    next(pages)
    server[0].server_proc.send_signal(signal.SIGSTOP)
    try:
        with pytest.raises(VectorError, match="did not answer within 2 seconds"):
            list(pages)
        with pytest.raises(VectorError, match="did not answer within 2 seconds"):
            open_vectors(f"milvus:{server[1]}#docs")
    finally:
        server[0].server_proc.send_signal(signal.SIGCONT)


def test_a_server_that_goes_away_midway_is_an_error(server):
    pages = iter(open_vectors(f"milvus:{server[1]}#docs", batch_rows=8).records)
    next(pages)
    server[0].stop()  # so this is the last test: no second one can run beside it
    with pytest.raises(VectorError, match="cannot be read") as caught:
        list(pages)
    assert "that it runs" in caught.value.remedy
