"""Stores of vectors of every kind: each gives back what was put in, and is the same afterwards."""

from collections import Counter

import numpy as np
import pytest

import stores
from stores import EXPECTED, TEXTS, VECTORS, read
from unembed.connectors import open_vectors
from unembed.errors import VectorError


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


@pytest.mark.parametrize(
    "kind", ["chroma", "qdrant", "lancedb", "duckdb", "sqlite-vec", "dataset", "hnswlib", "milvus"]
)
def test_a_store_is_the_same_after_it_was_read_only_in_part(kind, tmp_path):
    uri = stores.ON_DISK[kind](tmp_path / "store", VECTORS, TEXTS)
    before = stores.contents(tmp_path)
    source = open_vectors(uri, batch_rows=4).first(6)
    assert sum(map(len, source.batches)) == 6
    del source
    assert stores.contents(tmp_path) == before


@pytest.mark.parametrize(
    "kind", ["chroma", "qdrant", "lancedb", "duckdb", "sqlite-vec", "sqlite-blobs", "dataset", "milvus"]
)
def test_a_missing_collection_is_named_with_its_neighbours(kind, tmp_path):
    uri = stores.ON_DISK[kind](tmp_path / "store", VECTORS, TEXTS)
    with pytest.raises(VectorError, match="has no (collection|table|split) 'dogs'") as caught:
        open_vectors(uri.replace("#docs", "#dogs"))
    assert "did you mean 'docs'?" in caught.value.remedy
    if kind in ("chroma", "qdrant"):
        with pytest.raises(VectorError, match="several collections: docs, empty"):
            open_vectors(uri.partition("#")[0])


@pytest.mark.parametrize(
    "uri",
    [
        "chroma",
        "qdrant",
        "lancedb",
        "faiss",
        "npy",
        "sqlite",
        "duckdb",
        "hnswlib",
        "usearch",
        "annoy",
        "dataset",
        "milvus",
        "",
    ],
)
def test_a_store_that_is_not_there_is_an_error_and_is_not_made(uri, tmp_path):
    with pytest.raises(VectorError, match="There is no"):
        open_vectors(f"{uri}:{tmp_path / 'nowhere'}" if uri else str(tmp_path / "nowhere"))
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("kind", ["chroma", "qdrant", "milvus"])
def test_an_empty_collection_has_no_batches(kind, tmp_path):
    uri = stores.ON_DISK[kind](tmp_path / "store", VECTORS, TEXTS)
    source = open_vectors(uri.replace("#docs", "#empty"))
    assert source.rows == 0
    assert list(source.batches) == []


@pytest.mark.parametrize(
    "address",
    [
        "chroma:.#chroma.sqlite3",
        "qdrant:.#meta.json",
        "faiss:index.faiss",
        "sqlite:x.sqlite",
        "duckdb:x.duckdb",
        "hnswlib:x.hnsw",
        "usearch:x.usearch",
        "annoy:x.ann#8",
        "dataset:.#state.json",
        "feather:x.feather",
    ],
)
@pytest.mark.parametrize("content", [b"not what it should be" * 100, b"", b"SQLite format 3\0", b"ARROW1\0\0"])
def test_a_damaged_store_is_an_error_that_names_it(address, content, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    location, _, part = address.partition(":")[2].partition("#")
    (tmp_path / (part if location == "." else location)).write_bytes(content)
    before = stores.contents(tmp_path)
    with pytest.raises(VectorError, match="cannot be read|has no vector table|has no collection|no Qdrant"):
        list(open_vectors(address.partition("#")[0] if location == "." else address).records)
    assert stores.contents(tmp_path) == before


def test_rows_that_no_encoder_can_have_made_are_skipped_and_counted(tmp_path):
    vectors = VECTORS.copy()
    vectors[3, 2], vectors[5, 0], vectors[7] = np.nan, np.inf, 0.0
    vectors[9] *= 1e30
    vectors[11] *= 1e-30
    uri = stores.npy(tmp_path / "store", vectors, TEXTS)
    skipped = Counter()
    kept = [identifier for batch in open_vectors(uri, batch_rows=16).usable(skipped) for identifier in batch.ids]
    assert kept == [row for row in range(40) if row not in (3, 5, 7, 9, 11)]
    assert skipped == {"not finite": 2, "all zeros": 1, "longer than 1e+09": 1, "shorter than 1e-09": 1}


@pytest.mark.parametrize(
    "kind",
    ["npy", "parquet", "jsonl", "faiss", "qdrant", "feather", "duckdb", "sqlite-vec", "hnswlib", "usearch", "annoy"],
)
def test_a_store_that_changes_while_it_is_read_is_an_error(kind, tmp_path):
    source = open_vectors(stores.ON_DISK[kind](tmp_path / "store", VECTORS, TEXTS), batch_rows=16)
    next(source.records)
    changed = max((path for path in tmp_path.rglob("*") if path.is_file()), key=lambda path: path.stat().st_size)
    with changed.open("ab") as file:
        file.write(b" ")
    with pytest.raises(VectorError, match="changed while it was read"):
        list(source.records)
