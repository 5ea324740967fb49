"""Vectors of SQLite and DuckDB files, and of Hugging Face datasets on disk."""

import json
import sqlite3
from collections import Counter

import numpy as np
import pytest

import stores
from stores import EXPECTED, TEXTS, VECTORS, read
from unembed.connectors import open_vectors
from unembed.errors import VectorError


class TestSqliteVec:
    def test_rows_are_named_and_the_distance_is_known(self, tmp_path):
        source, _, ids, _ = read(stores.sqlite_vec(tmp_path / "store", VECTORS, TEXTS))
        assert ids == [f"id-{row}" for row in EXPECTED]
        assert source.rows == 40
        assert (source.storage.precision, source.storage.distance) == ("float32", "cosine")
        assert source.name.endswith("#docs.embedding")

    def test_bytes_are_read_as_numbers(self, tmp_path):
        small = np.clip(VECTORS * 30, -127, 127).astype(np.int8)
        source, vectors, _, _ = read(stores.sqlite_vec(tmp_path / "store", small, TEXTS, "int8[{}]"))
        assert sorted(vectors.tolist()) == sorted(small.astype(float).tolist())
        assert source.storage.quantised == "whole numbers of 8 bits"

    def test_bits_are_refused(self, tmp_path):
        uri = stores.sqlite_vec(tmp_path / "store", VECTORS[:0], [], "bit[8]")
        with pytest.raises(VectorError, match="vectors of single bits"):
            open_vectors(uri)

    def test_texts_may_be_in_another_table_with_the_same_row_ids(self, tmp_path):
        uri = stores.sqlite_vec(tmp_path / "store", VECTORS, TEXTS)
        connection = sqlite3.connect(tmp_path / "store" / "store.sqlite")
        rowids = dict(connection.execute("SELECT id, rowid FROM docs_rowids").fetchall())
        connection.execute("CREATE TABLE notes (number INTEGER PRIMARY KEY, body TEXT)")
        rows = [(rowids[f"id-{row}"], f"note {row}") for row in range(40)]
        connection.executemany("INSERT INTO notes VALUES (?, ?)", rows)
        connection.commit()
        connection.close()
        _, _, _, texts = read(uri, text_column="notes.body")
        assert texts == [f"note {row}" for row in EXPECTED]
        with pytest.raises(VectorError, match="no column 'title' in a table 'notes'"):
            open_vectors(uri, text_column="notes.title")

    def test_a_chunk_that_was_cut_is_an_error(self, tmp_path):
        uri = stores.sqlite_vec(tmp_path / "store", VECTORS, TEXTS)
        connection = sqlite3.connect(tmp_path / "store" / "store.sqlite")
        connection.execute("UPDATE docs_vector_chunks00 SET vectors = x'00' WHERE rowid = 2")
        connection.commit()
        connection.close()
        with pytest.raises(VectorError, match="chunk 2 has not the size"):
            list(open_vectors(uri).records)


class TestSqlite:
    def test_rows_in_a_journal_are_read_from_a_copy_and_nothing_is_written(self, tmp_path):
        uri = stores.sqlite_blobs(tmp_path / "store", VECTORS[:30], TEXTS[:30])
        writer = sqlite3.connect(tmp_path / "store" / "store.sqlite")
        writer.execute("PRAGMA journal_mode = WAL")
        rows = [(row, TEXTS[row], VECTORS[row].tobytes()) for row in range(30, 40)]
        writer.executemany("INSERT INTO docs VALUES (?, ?, ?)", rows)
        writer.commit()
        before = stores.contents(tmp_path)
        assert any(name.endswith("-wal") for name in before)
        source, vectors, _, texts = read(uri)
        assert source.rows == 40
        assert np.abs(vectors - VECTORS[EXPECTED]).max() == 0
        assert texts == [TEXTS[row] for row in EXPECTED]
        assert stores.contents(tmp_path) == before
        writer.close()

    def make(self, tmp_path, values, kind="BLOB"):
        connection = sqlite3.connect(tmp_path / "x.sqlite")
        connection.execute(f"CREATE TABLE t (v {kind})")
        connection.executemany("INSERT INTO t VALUES (?)", [(value,) for value in values])
        connection.commit()
        connection.close()
        return f"sqlite:{tmp_path / 'x.sqlite'}"

    def test_lists_in_json_are_vectors_and_missing_ones_are_counted(self, tmp_path):
        uri = self.make(tmp_path, [None, json.dumps([1.0, 2.0]), "[3, 4]"], "TEXT")
        skipped = Counter()
        (batch,) = open_vectors(uri).usable(skipped)
        assert batch.vectors.tolist() == [[1, 2], [3, 4]]
        assert batch.ids == [1, 2]
        assert skipped == {"not finite": 1}

    @pytest.mark.parametrize(
        ("values", "match"),
        [
            ([b"\0" * 8, b"\0" * 12], "row 1 has 3 numbers; row 0 has 2"),
            ([b"\0" * 8, b"\0" * 7], "neither float32 numbers nor a list"),
            ([b"\0" * 8, "word"], "neither float32 numbers nor a list"),
            (["word"], "has no vector table"),
            ([], "has no vector table"),
        ],
    )
    def test_what_is_no_vector_is_an_error(self, tmp_path, values, match):
        with pytest.raises(VectorError, match=match):
            list(open_vectors(self.make(tmp_path, values)).records)

    def test_a_name_with_quotes_is_a_name(self, tmp_path):
        connection = sqlite3.connect(tmp_path / "x.sqlite")
        connection.execute('CREATE TABLE "a""; DROP" ("v""" BLOB)')
        connection.execute('INSERT INTO "a""; DROP" VALUES (?)', (VECTORS[0].tobytes(),))
        connection.commit()
        connection.close()
        (batch,) = open_vectors(f"sqlite:{tmp_path / 'x.sqlite'}").records
        assert np.abs(batch.vectors - VECTORS[:1]).max() == 0


class TestDuckdb:
    @pytest.mark.parametrize(
        ("kind", "precision"), [("FLOAT[{}]", "float32"), ("FLOAT[]", "float32"), ("DOUBLE[]", "float64")]
    )
    def test_arrays_and_lists_are_vectors(self, tmp_path, kind, precision):
        source, vectors, ids, texts = read(stores.duckdb(tmp_path / "store", VECTORS, TEXTS, kind))
        assert np.abs(vectors - VECTORS[EXPECTED]).max() < 1e-6
        assert ids == [str(row) for row in EXPECTED]
        assert texts == [TEXTS[row] for row in EXPECTED]
        assert source.storage.precision == precision

    def make(self, tmp_path, *commands):
        import duckdb

        with duckdb.connect(str(tmp_path / "x.duckdb")) as connection:
            for command in commands:
                connection.execute(command)
        return f"duckdb:{tmp_path / 'x.duckdb'}"

    def test_missing_vectors_are_counted_and_mixed_dimensions_are_an_error(self, tmp_path):
        uri = self.make(tmp_path, "CREATE TABLE t (v FLOAT[])", "INSERT INTO t VALUES ([1, 2]), (NULL), ([3, 4])")
        skipped = Counter()
        (batch,) = open_vectors(uri).usable(skipped)
        assert batch.vectors.tolist() == [[1, 2], [3, 4]]
        assert skipped == {"not finite": 1}
        self.make(tmp_path, "INSERT INTO t VALUES ([5])")
        with pytest.raises(VectorError, match="row 3: 'v' holds 1 numbers; row 0 has 2"):
            list(open_vectors(uri).records)

    def test_a_table_of_another_schema_and_a_column_can_be_named(self, tmp_path):
        uri = self.make(
            tmp_path,
            "CREATE SCHEMA s",
            "CREATE TABLE s.t (a FLOAT[2], b FLOAT[2])",
            "INSERT INTO s.t VALUES ([1, 2], [3, 4])",
            "CREATE TABLE u (v FLOAT[2])",
        )
        (batch,) = open_vectors(f"{uri}#s.t.b").records
        assert batch.vectors.tolist() == [[3, 4]]
        with pytest.raises(VectorError, match="several vector tables: s.t, u"):
            open_vectors(uri)
        with pytest.raises(VectorError, match="several fields of vectors: a, b"):
            open_vectors(f"{uri}#s.t")
        assert list(open_vectors(f"{uri}#u").records) == []

    def test_a_view_of_another_file_is_not_opened(self, tmp_path):
        stores.parquet(tmp_path / "store", VECTORS, TEXTS)
        file = tmp_path / "store" / "vectors.parquet"
        uri = self.make(tmp_path, f"CREATE VIEW docs AS SELECT * FROM read_parquet('{file}')")
        with pytest.raises(VectorError, match="cannot be read|no table"):
            list(open_vectors(f"{uri}#docs").records)


class TestDataset:
    def test_one_dataset_needs_no_split(self, tmp_path):
        import datasets

        whole = datasets.Dataset.from_dict({"text": TEXTS, "embedding": VECTORS.tolist()})
        whole.select(range(39, -1, -1)).save_to_disk(str(tmp_path / "one"))
        source, vectors, _, texts = read(f"dataset:{tmp_path / 'one'}")
        assert np.abs(vectors - VECTORS[EXPECTED]).max() < 1e-6
        assert texts == [TEXTS[row] for row in EXPECTED]
        assert source.storage.kind == "Hugging Face dataset"
        with pytest.raises(VectorError, match="it has no splits"):
            open_vectors(f"dataset:{tmp_path / 'one'}#train")

    def test_a_list_of_files_that_leads_elsewhere_is_refused(self, tmp_path):
        stores.dataset(tmp_path / "store", VECTORS, TEXTS)
        state = tmp_path / "store" / "other" / "state.json"
        changed = json.loads(state.read_text())
        changed["_data_files"] = [{"filename": f"../docs/{path.name}"} for path in (state.parent).glob("*.arrow")]
        state.write_text(json.dumps(changed))
        with pytest.raises(VectorError, match="names files that are not there"):
            open_vectors(f"dataset:{tmp_path / 'store'}#other")


class TestArrow:
    @pytest.mark.parametrize("stream", [False, True])
    def test_both_forms_of_ipc_are_read(self, tmp_path, stream):
        import pyarrow

        table = pyarrow.table(
            {"text": TEXTS, "v": pyarrow.array(VECTORS.tolist(), pyarrow.list_(pyarrow.float32(), 8))}
        )
        open_ = pyarrow.ipc.new_stream if stream else pyarrow.ipc.new_file
        with open_(str(tmp_path / "x.arrow"), table.schema) as writer:
            writer.write_table(table, max_chunksize=7)
        source, vectors, _, texts = read(str(tmp_path / "x.arrow"))
        assert source.rows == 40
        assert np.abs(vectors - VECTORS[EXPECTED]).max() == 0
        assert texts == [TEXTS[row] for row in EXPECTED]

    @pytest.mark.parametrize("size", [-1, 2])
    def test_missing_lists_are_counted(self, tmp_path, size):
        import pyarrow.feather

        kind = pyarrow.list_(pyarrow.float32(), size)
        table = pyarrow.table({"v": pyarrow.array([None, [1, 2], None, [3, 4]], kind)})
        pyarrow.feather.write_feather(table, tmp_path / "x.feather", compression="zstd")
        skipped = Counter()
        (batch,) = open_vectors(str(tmp_path / "x.feather")).usable(skipped)
        assert batch.vectors.tolist() == [[1, 2], [3, 4]]
        assert list(batch.ids) == [1, 3]
        assert skipped == {"not finite": 2}


def test_texts_in_metadata_are_found_by_a_usual_name_or_by_the_one_that_is_given(tmp_path):
    uri = stores.pinecone_export(tmp_path / "store", VECTORS, TEXTS)
    assert read(uri)[3] == [TEXTS[row] for row in EXPECTED]
    assert read(uri, text_column="metadata.genre")[3] == ["x"] * 40
    assert read(uri, text_column="metadata.absent")[3] == [None] * 40
    assert read(uri, text_column="id")[3] == [f"id-{row}" for row in EXPECTED]
    with pytest.raises(VectorError, match="has no field 'nothing'"):
        open_vectors(uri, text_column="nothing")
