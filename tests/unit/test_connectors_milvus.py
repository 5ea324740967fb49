"""Vectors of Milvus: of Milvus Lite's folder, of which a copy is read, and of a server.

The server here is the one that Milvus Lite has. ``test_connectors_milvus_server.py`` has Milvus itself.
"""

from collections import Counter

import numpy as np
import pytest

import stores
from stores import EXPECTED, TEXTS, VECTORS, read
from unembed.connectors import open_vectors
from unembed.errors import VectorError


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    with stores.running_milvus(tmp_path_factory.mktemp("milvus") / "store.db") as address:
        stores.fill_milvus(address, VECTORS, TEXTS)
        yield address


def state(address):
    """All that a server holds."""
    from pymilvus import MilvusClient

    client = MilvusClient(address)
    rows = client.query("docs", filter="", limit=100, output_fields=["*"])
    described = {name: str(client.describe_collection(name)) for name in sorted(client.list_collections())}
    client.close()
    return described, sorted((row["id"], row["text"], list(row["embedding"])) for row in rows)


def test_a_server_gives_its_vectors_and_is_the_same_afterwards(server):
    before = state(server)
    source, vectors, ids, texts = read(f"milvus:{server}#docs")
    assert np.abs(vectors - VECTORS[EXPECTED]).max() < 1e-6
    assert ids == [f"id-{row}" for row in EXPECTED]
    assert texts == [TEXTS[row] for row in EXPECTED]
    assert source.rows == 40
    assert (source.storage.kind, source.storage.distance) == ("Milvus collection (server)", "cosine")
    assert state(server) == before


def test_a_missing_collection_and_an_empty_one(server):
    with pytest.raises(VectorError, match="has no collection 'dogs'") as caught:
        open_vectors(f"milvus:{server}#dogs")
    assert "did you mean 'docs'?" in caught.value.remedy
    assert list(open_vectors(f"milvus:{server}#empty").records) == []


def test_texts_may_be_in_fields_that_the_schema_does_not_name(tmp_path):
    from pymilvus import MilvusClient

    with stores.running_milvus(tmp_path / "store.db") as address:
        client = MilvusClient(address)
        client.create_collection("docs", dimension=8)
        rows = [{"id": row, "vector": VECTORS[row].tolist(), "content": TEXTS[row]} for row in range(40)]
        client.insert("docs", rows)
        client.close()
        _, vectors, ids, texts = read(f"milvus:{address}#docs")
        assert np.abs(vectors - VECTORS[EXPECTED]).max() < 1e-6
        assert ids == EXPECTED.tolist()
        assert texts == [TEXTS[row] for row in EXPECTED]
        assert set(read(f"milvus:{address}#docs", text_column="absent")[3]) == {None}


def test_numbers_that_a_server_gives_as_bytes_are_read():
    from unembed.connectors.milvus import _numbers

    half, small = VECTORS[0].astype(np.float16), np.array([-128, 0, 127], np.int8)
    upper = (VECTORS[0].view(np.uint32) >> 16).astype(np.uint16)
    assert (_numbers(half.tobytes(), "FLOAT16_VECTOR") == half).all()
    assert (_numbers([half.tobytes()], "FLOAT16_VECTOR") == half).all()
    assert (_numbers(small.tobytes(), "INT8_VECTOR") == small).all()
    assert np.abs(_numbers(upper.tobytes(), "BFLOAT16_VECTOR") - VECTORS[0]).max() < 0.02


def test_a_server_that_is_not_there_is_an_error(monkeypatch):
    monkeypatch.setattr("unembed.connectors.milvus._SECONDS", 1)
    with pytest.raises(VectorError, match="cannot be read") as caught:
        open_vectors("milvus:http://127.0.0.1:1#docs")
    assert caught.value.remedy


def test_credentials_that_are_refused_and_collections_that_are_not_loaded_have_a_remedy():
    from pymilvus import MilvusException

    from unembed.connectors.milvus import _ask

    def refuse(message):
        raise MilvusException(message=message)

    with pytest.raises(VectorError, match="refuses these credentials") as caught:
        _ask("milvus:x", refuse, "auth check failure, please check username and password are correct")
    assert "MILVUS_TOKEN" in caught.value.remedy
    with pytest.raises(VectorError, match="is not loaded"):
        _ask("milvus:x", refuse, "collection not loaded[collection=1]")


def test_a_folder_that_is_in_use_can_be_read(tmp_path):
    with stores.running_milvus(tmp_path / "store.db") as address:
        stores.fill_milvus(address, VECTORS, TEXTS)
        before = stores.contents(tmp_path)
        skipped = Counter()
        assert sum(map(len, open_vectors(f"milvus:{tmp_path / 'store.db'}#docs").usable(skipped))) == 40
        assert stores.contents(tmp_path) == before
    assert not skipped
