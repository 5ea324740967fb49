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


@pytest.mark.parametrize("kind", ["chroma", "qdrant", "lancedb"])
def test_a_store_is_the_same_after_it_was_read_only_in_part(kind, tmp_path):
    uri = stores.ON_DISK[kind](tmp_path / "store", VECTORS, TEXTS)
    before = stores.contents(tmp_path)
    source = open_vectors(uri, batch_rows=4).first(6)
    assert sum(map(len, source.batches)) == 6
    del source
    assert stores.contents(tmp_path) == before


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


@pytest.mark.parametrize("kind", ["npy", "parquet", "jsonl", "faiss", "qdrant"])
def test_a_store_that_changes_while_it_is_read_is_an_error(kind, tmp_path):
    source = open_vectors(stores.ON_DISK[kind](tmp_path / "store", VECTORS, TEXTS), batch_rows=16)
    next(source.records)
    changed = max((path for path in tmp_path.rglob("*") if path.is_file()), key=lambda path: path.stat().st_size)
    with changed.open("ab") as file:
        file.write(b" ")
    with pytest.raises(VectorError, match="changed while it was read"):
        list(source.records)
