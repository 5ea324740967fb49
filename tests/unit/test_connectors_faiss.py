"""Vectors of FAISS indexes: as they were put in, or as their codes say; what cannot be read is refused."""

import numpy as np
import pytest

import stores
from stores import read
from unembed.connectors import open_vectors
from unembed.errors import VectorError


@pytest.mark.parametrize("kind", ["Flat", "IDMap,Flat", "IVF4,Flat", "HNSW8", "SQ8", "IVF2,SQ8", "SQfp16"])
def test_a_faiss_index_gives_its_vectors_back(kind, tmp_path):
    vectors = np.random.default_rng(1).normal(size=(400, 8)).astype(np.float32)
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
    vectors = np.random.default_rng(1).normal(size=(400, 8)).astype(np.float32)
    source, found, ids, _ = read(stores.faiss(tmp_path / "store", vectors, [], kind))
    assert source.storage.quantised == "product quantisation, 4 codes of 4 bits"
    errors = np.linalg.norm(found - vectors[ids], axis=1)
    strangers = np.linalg.norm(found - vectors[np.roll(ids, 7)], axis=1)
    assert errors.mean() < 0.6 * strangers.mean()


@pytest.mark.parametrize("kind", ["IVF2,PQ4x4fs", "OPQ4,IVF2,PQ4x4fs"])
def test_an_index_on_which_faiss_crashes_is_refused_with_the_reason(kind, tmp_path):
    vectors = np.random.default_rng(1).normal(size=(400, 8)).astype(np.float32)
    uri = stores.faiss(tmp_path / "store", vectors, [], kind)
    with pytest.raises(VectorError, match="IndexIVFPQFastScan mixes the codes of 32 vectors"):
        open_vectors(uri)


def test_fast_codes_without_lists_are_read(tmp_path):
    vectors = np.random.default_rng(1).normal(size=(400, 8)).astype(np.float32)
    _, found, ids, _ = read(stores.faiss(tmp_path / "store", vectors, [], "PQ4x4fs"))
    assert np.abs(found - vectors[ids]).mean() < 0.5
