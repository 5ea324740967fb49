"""Vectors of Chroma: read from a copy, because Chroma writes to what it opens."""

import shutil
import sqlite3
from pathlib import Path

import numpy as np
import pytest

import stores
from stores import TEXTS, VECTORS, read
from unembed.connectors import open_vectors
from unembed.errors import VectorError


def test_chroma_names_its_default_encoder_and_its_distance(tmp_path):
    kept = open_vectors(stores.chroma(tmp_path / "store", VECTORS, TEXTS)).storage
    assert kept.kind == "Chroma collection"
    assert (kept.encoder, kept.distance, kept.precision) == ("all-MiniLM-L6-v2", "l2", "float32")
    assert "'default'" in kept.encoder_said_by


def test_a_chroma_collection_beyond_what_its_log_holds_is_read_whole(tmp_path):
    # Chroma writes its index every thousand rows and then forgets its log; what is left lies in both.
    many = np.random.default_rng(1).normal(size=(2300, 4)).astype(np.float32)
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


@pytest.mark.parametrize(
    "settings", [{"keys": []}, {"keys": {"#embedding": 7}}, {"embedding_function": "x", "hnsw": 3}]
)
def test_odd_settings_of_a_chroma_collection_say_nothing(settings):
    from unembed.connectors.chroma import _section

    assert _section(settings, "keys", "#embedding", "float_list") == {}
    assert _section(settings, "embedding_function") == {}
    assert _section(settings, "hnsw") == {}
