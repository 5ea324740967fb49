"""Vectors of index files: hnswlib, USearch and Annoy."""

import numpy as np
import pytest

import stores
from stores import EXPECTED, TEXTS, VECTORS, read
from unembed.connectors import open_vectors
from unembed.errors import VectorError


class TestHnswlib:
    def test_labels_are_ids_and_deleted_elements_are_left_out(self, tmp_path):
        hnswlib = pytest.importorskip("hnswlib")

        index = hnswlib.Index("ip", 8)
        index.init_index(100)
        index.add_items(VECTORS, np.arange(40) + 1000)
        index.mark_deleted(1003)
        index.save_index(str(tmp_path / "index.hnsw"))
        source, vectors, ids, _ = read(str(tmp_path / "index.hnsw"))
        assert set(ids) == {*range(1000, 1040)} - {1003}
        assert source.rows == 40
        assert np.abs(vectors - np.delete(VECTORS[EXPECTED], np.flatnonzero(EXPECTED == 3), axis=0)).max() == 0

    def test_what_is_compared_by_cosine_is_stored_with_length_1(self, tmp_path):
        _, vectors, _, _ = read(stores.hnswlib(tmp_path / "store", VECTORS, TEXTS, space="cosine"))
        assert np.abs(np.linalg.norm(vectors, axis=1) - 1).max() < 1e-5

    def test_a_file_that_was_cut_is_an_error(self, tmp_path):
        uri = stores.hnswlib(tmp_path / "store", VECTORS, TEXTS)
        path = tmp_path / "store" / "index.hnsw"
        path.write_bytes(path.read_bytes()[:2000])
        with pytest.raises(VectorError, match="ends in the middle of its vectors"):
            open_vectors(uri)

    def test_an_empty_index_has_no_batches(self, tmp_path):
        source = open_vectors(stores.hnswlib(tmp_path / "store", VECTORS[:0], []))
        assert source.rows == 0
        assert list(source.records) == []


class TestUsearch:
    @pytest.mark.parametrize(
        ("dtype", "precision", "error"),
        [("f32", "float32", 1e-6), ("f16", "float16", 2e-3), ("bf16", "bfloat16", 2e-2)],
    )
    def test_each_precision_gives_its_vectors(self, tmp_path, dtype, precision, error):
        source, vectors, _, _ = read(stores.usearch(tmp_path / "store", VECTORS, TEXTS, dtype))
        assert source.storage.precision == precision
        assert source.storage.distance == "cos"
        assert np.abs(np.sort(vectors, axis=0) - np.sort(VECTORS, axis=0)).max() < error

    def test_bytes_keep_the_directions(self, tmp_path):
        source, vectors, ids, _ = read(stores.usearch(tmp_path / "store", VECTORS, TEXTS, "i8"))
        assert source.storage.quantised == "whole numbers of 8 bits"
        originals = VECTORS[ids]
        cosines = (vectors * originals).sum(1) / np.linalg.norm(vectors, axis=1) / np.linalg.norm(originals, axis=1)
        assert cosines.min() > 0.999

    def test_a_key_with_several_vectors_names_each_of_them(self, tmp_path):
        source, vectors, ids, _ = read(stores.usearch(tmp_path / "store", VECTORS, TEXTS, multi=True))
        assert source.rows == len(vectors) == 40
        assert sorted(ids) == [row // 2 for row in range(40)]

    def test_vectors_of_bits_are_refused(self, tmp_path):
        from usearch.index import Index

        index = Index(ndim=64, metric="hamming", dtype="b1")
        index.add(np.arange(4), np.random.default_rng(0).integers(0, 256, (4, 8)).astype(np.uint8))
        index.save(str(tmp_path / "x.usearch"))
        with pytest.raises(VectorError, match="vectors of b1"):
            open_vectors(str(tmp_path / "x.usearch"))


class TestAnnoy:
    @pytest.mark.parametrize("metric", ["angular", "euclidean", "manhattan", "dot"])
    def test_each_metric_gives_its_vectors(self, tmp_path, metric):
        source, vectors, ids, _ = read(stores.annoy(tmp_path / "store", VECTORS, TEXTS, metric))
        assert np.abs(vectors - VECTORS[EXPECTED]).max() == 0
        assert ids == EXPECTED.tolist()
        assert source.storage.distance == metric

    def test_items_that_were_never_added_are_no_vectors(self, tmp_path):
        annoy = pytest.importorskip("annoy")

        index = annoy.AnnoyIndex(8, "angular")
        for row in range(0, 40, 2):
            index.add_item(row, VECTORS[row].tolist())
        index.build(2)
        index.save(str(tmp_path / "x.ann"))
        _, _, ids, _ = read(f"annoy:{tmp_path / 'x.ann'}#8")
        assert sorted(ids) == list(range(0, 40, 2))

    @pytest.mark.parametrize(
        ("part", "match"),
        [
            ("", "does not say the dimension"),
            ("#7", "cannot be read as an Annoy index of 7 numbers"),
            ("#16", "cannot be read as an Annoy index of 16 numbers"),
            ("#8.euclidean", "cannot be read as an Annoy index of 8 numbers, euclidean"),
            ("#8.cosine", "'cosine' is no metric of Annoy"),
            ("#0", "'0' is no dimension"),
            ("#docs", "'docs' is no dimension"),
        ],
    )
    def test_a_wrong_dimension_or_metric_is_noticed(self, tmp_path, part, match):
        uri = stores.annoy(tmp_path / "store", VECTORS, TEXTS).partition("#")[0]
        with pytest.raises(VectorError, match=match) as caught:
            open_vectors(f"{uri}{part}")
        assert "annoy:FILE#384" in caught.value.remedy


@pytest.mark.parametrize("kind", ["hnswlib", "usearch", "annoy"])
def test_an_index_has_no_columns(kind, tmp_path):
    uri = stores.ON_DISK[kind](tmp_path / "store", VECTORS, TEXTS)
    with pytest.raises(VectorError, match="it has no columns"):
        open_vectors(uri, column="embedding")
    if kind != "annoy":
        with pytest.raises(VectorError, match="it has no parts"):
            open_vectors(f"{uri}#part")


@pytest.mark.parametrize("kind", ["hnswlib", "usearch", "annoy"])
def test_vectors_that_are_not_finite_are_counted(kind, tmp_path):
    from collections import Counter

    vectors = VECTORS.copy()
    vectors[3] = np.nan
    skipped = Counter()
    source = open_vectors(stores.ON_DISK[kind](tmp_path / "store", vectors, TEXTS), batch_rows=16)
    assert sum(map(len, source.usable(skipped))) == 39
    assert skipped == {"not finite": 1}
