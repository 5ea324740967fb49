"""Files of vectors: every format gives the same batches, and every mistake is named with its place."""

import gzip
import io
import json
import zipfile

import numpy as np
import pandas
import pyarrow
import pyarrow.parquet
import pytest

from unembed.connectors import is_vector_file, read_vector_lines, read_vectors
from unembed.errors import VectorError

VECTORS = np.random.default_rng(0).normal(size=(7, 4)).astype(np.float32)


def everything(source):
    batches = list(source.batches)
    return np.concatenate(batches) if batches else np.empty((0, 4), np.float32)


def as_npy(path, vectors):
    np.save(path, vectors)


def as_npy_by_columns(path, vectors):
    np.save(path, np.asfortranarray(vectors))


def as_npz(path, vectors):
    np.savez(path, ids=np.arange(len(vectors)), vectors=vectors)


def as_packed_npz(path, vectors):
    np.savez_compressed(path, vectors=vectors)


def as_npz_by_columns(path, vectors):
    np.savez(path, vectors=np.asfortranarray(vectors))


def as_plain_table(path, vectors):
    np.savetxt(path, vectors, delimiter="\t" if ".tsv" in path.name else ",")


def as_pandas_table(path, vectors):
    pandas.DataFrame(vectors).to_csv(path, sep="\t" if ".tsv" in path.name else ",")


def as_pandas_table_without_index(path, vectors):
    pandas.DataFrame(vectors).to_csv(path, index=False)


def as_table_with_texts_and_ids(path, vectors):
    frame = pandas.DataFrame(vectors, columns=["a", "b", "c", "d"])
    frame.insert(0, "id", range(len(vectors)))
    frame.insert(1, "text", "the cat, asleep")
    frame.to_csv(path, index=False)


def as_table_of_lists(path, vectors):
    pandas.DataFrame({"id": range(len(vectors)), "embedding": vectors.tolist()}).to_csv(path, index=False)


def as_table_of_printed_arrays(path, vectors):
    pandas.DataFrame({"embedding": list(vectors.astype(np.float64))}).to_csv(path, index=False)


def as_arrays(path, vectors):
    path.write_text("".join(f"{json.dumps(row)}\n" for row in vectors.tolist()))


def as_packed_arrays(path, vectors):
    path.write_bytes(gzip.compress("".join(f"{json.dumps(row)}\n" for row in vectors.tolist()).encode()))


def as_objects(path, vectors):
    records = ({"id": row, "text": "the cat", "vec": vector} for row, vector in enumerate(vectors.tolist()))
    path.write_text("\n\n".join(json.dumps(record) for record in records))


def as_objects_with_a_usual_name(path, vectors):
    records = ({"tags": [1, 2], "embedding": vector} for vector in vectors.tolist())
    path.write_text("\n".join(json.dumps(record) for record in records))


def as_parquet(path, vectors):
    pyarrow.parquet.write_table(pyarrow.table({"id": range(len(vectors)), "vec": vectors.tolist()}), path)


def as_parquet_of_fixed_size(path, vectors):
    lists = pyarrow.FixedSizeListArray.from_arrays(pyarrow.array(vectors.ravel()), vectors.shape[1])
    pyarrow.parquet.write_table(pyarrow.table({"text": ["x"] * len(vectors), "vec": lists}), path, row_group_size=3)


@pytest.mark.parametrize("batch_rows", [1, 3, 100])
@pytest.mark.parametrize(
    ("name", "write"),
    [
        ("x.npy", as_npy),
        ("x.npy", as_npy_by_columns),
        ("x.npz", as_npz),
        ("x.npz", as_packed_npz),
        ("x.npz", as_npz_by_columns),
        ("x.csv", as_plain_table),
        ("x.tsv", as_plain_table),
        ("x.csv.gz", as_plain_table),
        ("x.csv", as_pandas_table),
        ("x.tsv", as_pandas_table),
        ("x.csv", as_pandas_table_without_index),
        ("x.csv", as_table_with_texts_and_ids),
        ("x.csv", as_table_of_lists),
        ("x.csv", as_table_of_printed_arrays),
        ("x.jsonl", as_arrays),
        ("x.jsonl.gz", as_packed_arrays),
        ("X.JSONL", as_objects),
        ("x.jsonl", as_objects_with_a_usual_name),
        ("x.parquet", as_parquet),
        ("x.parquet", as_parquet_of_fixed_size),
    ],
)
def test_every_format_gives_the_same_vectors_in_batches(tmp_path, name, write, batch_rows):
    write(tmp_path / name, VECTORS)
    source = read_vectors(tmp_path / name, batch_rows=batch_rows)
    batches = list(source.batches)
    assert [len(batch) for batch in batches][:-1] == [batch_rows] * (len(batches) - 1)
    assert all(batch.dtype == np.float32 and len(batch) <= batch_rows for batch in batches)
    assert np.allclose(np.concatenate(batches), VECTORS, atol=1e-6)
    assert source.rows in (None, 7)


@pytest.mark.parametrize(
    ("name", "write"),
    [("x.npy", as_npy), ("x.npz", as_npz), ("x.parquet", as_parquet)],
    ids=lambda part: getattr(part, "__name__", part),
)
def test_where_it_can_be_known_the_number_of_vectors_is_known_before_reading(tmp_path, name, write):
    write(tmp_path / name, VECTORS)
    assert read_vectors(tmp_path / name).rows == 7


@pytest.mark.parametrize("dtype", [np.float16, np.float64, np.int8, ">f4"])
def test_numbers_of_any_kind_become_float32(tmp_path, dtype):
    vectors = (10 * VECTORS).astype(dtype)
    np.save(tmp_path / "x.npy", vectors)
    np.savez(tmp_path / "x.npz", vectors)
    for name in ("x.npy", "x.npz"):
        found = everything(read_vectors(tmp_path / name))
        assert found.dtype == np.float32
        assert np.array_equal(found, vectors.astype(np.float32))


def test_one_vector_by_itself_is_a_row(tmp_path):
    np.save(tmp_path / "x.npy", VECTORS[0])
    np.savez(tmp_path / "x.npz", vector=VECTORS[0])
    assert np.array_equal(everything(read_vectors(tmp_path / "x.npy")), VECTORS[:1])
    assert np.array_equal(everything(read_vectors(tmp_path / "x.npz", column="vector")), VECTORS[:1])


@pytest.mark.parametrize("name", ["x.csv", "x.jsonl"])
def test_an_empty_file_has_no_vectors(tmp_path, name):
    (tmp_path / name).write_text("")
    assert list(read_vectors(tmp_path / name).batches) == []


@pytest.mark.parametrize("limit", [1, 3, 4, 100])
def test_the_first_so_many_can_be_taken(tmp_path, limit):
    np.save(tmp_path / "x.npy", VECTORS)
    source = read_vectors(tmp_path / "x.npy", batch_rows=3).first(limit)
    assert source.rows == min(limit, 7)
    assert np.array_equal(everything(source), VECTORS[:limit])


def test_what_comes_after_the_first_so_many_is_not_read(tmp_path):
    (tmp_path / "x.jsonl").write_text("[1, 2]\n[3, 4]\nnonsense\n")
    source = read_vectors(tmp_path / "x.jsonl", batch_rows=2).first(2)
    assert everything(source).tolist() == [[1, 2], [3, 4]]


def test_a_memory_map_holds_no_more_than_a_batch(tmp_path):
    import tracemalloc

    with (tmp_path / "x.npy").open("wb") as file:
        np.lib.format.write_array_header_1_0(file, {"descr": "<f4", "fortran_order": False, "shape": (100_000, 256)})
        for _ in range(100):
            file.write(np.ones((1000, 256), np.float32).tobytes())
    tracemalloc.start()
    rows = sum(len(batch) for batch in read_vectors(tmp_path / "x.npy", batch_rows=512).batches)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert rows == 100_000
    assert peak < 8 << 20  # of 100 MB


def test_an_archive_is_unpacked_batch_by_batch(tmp_path):
    import tracemalloc

    np.savez_compressed(tmp_path / "x.npz", np.ones((50_000, 256), np.float32))
    tracemalloc.start()
    rows = sum(len(batch) for batch in read_vectors(tmp_path / "x.npz", batch_rows=512).batches)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert rows == 50_000
    assert peak < 8 << 20  # of 50 MB


@pytest.mark.parametrize(
    "line",
    ["0.5 -1 2e-3", "0.5,-1,2e-3", "0.5, -1, 2e-3,", "[0.5, -1, 2e-3]", "[ 0.5\t-1  2e-3 ]", '{"v": [0.5, -1, 2e-3]}'],
)
def test_a_line_is_numbers_an_array_or_an_object(line):
    source = read_vector_lines([f"{line}\n", "\n"], name="stdin")
    assert everything(source).tolist() == [[0.5, -1.0, np.float32(2e-3)]]


@pytest.mark.parametrize("name", ["x.npy", "x.NPZ", "a/b.parquet", "x.csv", "x.tsv.gz", "x.jsonl"])
def test_names_of_files_of_vectors(name):
    assert is_vector_file(name)


@pytest.mark.parametrize("name", ["x.txt", "the cat sleeps.", "x", "", "x.npy.gz", "x.gz", "mr. npy"])
def test_names_of_anything_else(name):
    assert not is_vector_file(name)


class TestColumn:
    def write(self, path, name):
        columns = {"first": VECTORS.tolist(), "second": (2 * VECTORS).tolist()}
        if name.endswith(".npz"):
            np.savez(path / name, **{key: np.array(values) for key, values in columns.items()})
        elif name.endswith(".parquet"):
            pyarrow.parquet.write_table(pyarrow.table(columns), path / name)
        elif name.endswith(".csv"):
            pandas.DataFrame(columns).to_csv(path / name, index=False)
        else:
            pandas.DataFrame(columns).to_json(path / name, orient="records", lines=True, double_precision=15)
        return path / name

    @pytest.mark.parametrize("name", ["x.npz", "x.parquet", "x.csv", "x.jsonl"])
    def test_one_of_several_can_be_chosen(self, tmp_path, name):
        source = read_vectors(self.write(tmp_path, name), column="second")
        assert np.allclose(everything(source), 2 * VECTORS, atol=1e-6)

    @pytest.mark.parametrize("name", ["x.npz", "x.parquet", "x.csv", "x.jsonl"])
    def test_several_without_a_choice_are_named(self, tmp_path, name):
        with pytest.raises(VectorError, match="first.*second") as raised:
            everything(read_vectors(self.write(tmp_path, name)))
        assert "`column=NAME`" in raised.value.remedy

    @pytest.mark.parametrize("name", ["x.npz", "x.parquet", "x.csv", "x.jsonl"])
    def test_one_that_is_not_there_is_named_with_the_nearest(self, tmp_path, name):
        with pytest.raises(VectorError, match="'secnd'(.|\n)*second"):
            everything(read_vectors(self.write(tmp_path, name), column="secnd"))

    def test_one_that_holds_something_else_is_refused(self, tmp_path):
        (tmp_path / "x.jsonl").write_text('{"text": "the cat", "embedding": [1, 2]}\n')
        with pytest.raises(VectorError, match="line 1: the field 'text' holds no list of numbers"):
            everything(read_vectors(tmp_path / "x.jsonl", column="text"))

    def test_a_single_array_has_none(self, tmp_path):
        np.save(tmp_path / "x.npy", VECTORS)
        with pytest.raises(VectorError, match="no columns"):
            read_vectors(tmp_path / "x.npy", column="embedding")


class TestMistakes:
    def fails(self, path, content, match, **options):
        if content is not None:
            path.write_bytes(content if isinstance(content, bytes) else content.encode())
        with pytest.raises(VectorError, match=match) as raised:
            everything(read_vectors(path, **options))
        assert raised.value.remedy
        assert "text file" not in raised.value.remedy

    @pytest.mark.parametrize(
        ("content", "match"),
        [
            ("[1, 2]\n\n[1, 2, 3]\n", "line 3 has 3 numbers; line 1 has 2"),
            ("[1, 2]\n[1, NaN]\n", r"not finite \(lines 2\)"),
            ("[1, 2]\n[1, 1e60]\n", r"not finite \(lines 2\)"),
            ("[1, 2]\n\n[0, 0]\n[0.0, 0]\n", r"all zeros \(lines 3, 4\)"),
            ('["a", "b"]\n', "line 1: '\"a\"' is not a number"),
            ("[1, null]\n", "line 1: 'null' is not a number"),
            ("[[1, 2], [3, 4]]\n", "is not a number"),
            ("the cat sleeps\n", "line 1: 'the' is not a number"),
            (f"{'x' * 500}\n", "line 1: 'x{29}…' is not a number"),
            ('{"embedding": [1, 2]\n', "line 1 is not JSON"),
            ('{"text": "the cat", "tags": ["a"]}\n', "no field that holds a list of numbers. Its fields: text, tags"),
            ('{"embedding": [1, 2]}\n{"embedding": null}\n', "line 2: the field 'embedding' holds no list of numbers"),
            ('{"embedding": [1, 2]}\n{"vector": [1, 2]}\n', "line 2 has no field 'embedding'"),
            ('{"embedding": [true, false]}\n', "no field that holds a list of numbers"),
            (b"\x93NUMPY\x01\x00", "not UTF-8|NUL"),
            (f"[1, {'9' * 400}]\n", r"not finite \(lines 1\)"),
            (f'{{"embedding": [1, {"9" * 400}]}}\n', "line 1 is not a list of numbers"),
            ("[" * 100_000, "is not a number"),
            ('{"a":' * 100_000, "is not JSON"),
        ],
    )
    def test_in_lines(self, tmp_path, content, match):
        self.fails(tmp_path / "x.jsonl", content, match)

    @pytest.mark.parametrize(
        ("content", "match"),
        [
            ("a,b\n1,2\n1,x\n", "line 3, column 'b': 'x' is not a number"),
            ("a,b\n1,2\n1,\n", "line 3, column 'b': '' is not a number"),
            ("a,b\n1,2\n1,nan\n", r"not finite \(lines 3\)"),
            ("a,b\n1,2\n0,0\n", r"all zeros \(lines 3\)"),
            ("a,b\n1,2\n1,2,3\n", "line 3 has 3 columns, where 2 were expected"),
            ("text\nthe cat\n", "line 2 holds no vector"),
            ('v\n"[1, 2]"\n"[1, 2, 3]"\n', "line 3 has 3 numbers; line 2 has 2"),
            ('v\n"[1, 2]"\n"[1, x]"\n', "line 3, column 'v': 'x' is not a number"),
            ('a,b\n1,"2\n', "is not CSV"),
        ],
    )
    def test_in_a_table(self, tmp_path, content, match):
        self.fails(tmp_path / "x.csv", content, match)

    @pytest.mark.parametrize("name", ["x.jsonl.gz", "x.csv.gz", "x.tsv.gz"])
    def test_in_a_compressed_file(self, tmp_path, name):
        whole = gzip.compress(b"[1, 2]\n" * 10_000)
        self.fails(tmp_path / name, whole[:-20], "truncated or not a gzip file")
        self.fails(tmp_path / name, b"[1, 2]\n", "truncated or not a gzip file")

    def test_rows_of_arrays_are_counted_over_all_batches(self, tmp_path):
        vectors = VECTORS.copy()
        vectors[5, 1] = np.inf
        np.save(tmp_path / "x.npy", vectors)
        self.fails(tmp_path / "x.npy", None, r"not finite \(rows 5\)", batch_rows=2)
        np.savez(tmp_path / "x.npz", vectors)
        self.fails(tmp_path / "x.npz", None, r"not finite \(rows 5\)", batch_rows=2)

    def test_many_bad_rows_are_not_all_listed(self, tmp_path):
        np.save(tmp_path / "x.npy", np.zeros((9, 4)))
        self.fails(tmp_path / "x.npy", None, r"all zeros \(rows 0, 1, 2, 3, 4, \.\.\.\)")

    @pytest.mark.parametrize("array", [np.ones(()), np.ones((2, 3, 4)), np.ones((2, 0)), np.ones(0)])
    def test_no_rows_of_numbers(self, tmp_path, array):
        np.save(tmp_path / "x.npy", array)
        self.fails(tmp_path / "x.npy", None, "has the shape")
        np.savez(tmp_path / "x.npz", a=array)
        self.fails(tmp_path / "x.npz", None, "has the shape", column="a")

    @pytest.mark.parametrize("array", [np.array([["a", "b"]]), np.ones((2, 2), complex), np.ones((2, 2), bool)])
    def test_no_numbers(self, tmp_path, array):
        np.save(tmp_path / "x.npy", array)
        self.fails(tmp_path / "x.npy", None, "not numbers")
        np.savez(tmp_path / "x.npz", array)
        self.fails(tmp_path / "x.npz", None, "not numbers")

    def test_nothing_is_unpickled(self, tmp_path):
        np.save(tmp_path / "x.npy", np.array([[{}]], dtype=object), allow_pickle=True)
        self.fails(tmp_path / "x.npy", None, "Cannot read|not numbers")
        np.savez(tmp_path / "x.npz", np.array([[{}]], dtype=object))
        self.fails(tmp_path / "x.npz", None, "not numbers")

    def test_a_damaged_archive(self, tmp_path):
        content = io.BytesIO()
        np.savez(content, VECTORS)
        self.fails(tmp_path / "x.npz", content.getvalue()[:100], "Cannot read")
        with zipfile.ZipFile(tmp_path / "y.npz", "w") as archive:
            archive.writestr("readme.txt", "no array")
        self.fails(tmp_path / "y.npz", None, "Cannot read")
        with zipfile.ZipFile(tmp_path / "z.npz", "w") as archive, io.BytesIO() as file:
            np.save(file, VECTORS)
            archive.writestr("a.npy", file.getvalue()[:-20])
        self.fails(tmp_path / "z.npz", None, "damaged")

    def test_an_archive_with_a_password(self, tmp_path):
        content = io.BytesIO()
        np.savez(content, VECTORS)
        locked = bytearray(content.getvalue())
        for header, flags in ((b"PK\3\4", 6), (b"PK\1\2", 8)):
            locked[locked.index(header) + flags] |= 1
        self.fails(tmp_path / "x.npz", bytes(locked), "encrypted")

    def test_a_shape_beyond_any_memory(self, tmp_path):
        content = io.BytesIO()
        np.save(content, np.ones((10**3, 10)))
        self.fails(tmp_path / "x.npy", content.getvalue().replace(b"(1000, 10)", b"(10**9,10)"), "Cannot read")
        self.fails(tmp_path / "x.npy", content.getvalue().replace(b"(1000, 10)", b"(9999,999)"), "Cannot read")

    @pytest.mark.parametrize(
        ("column", "match"),
        [
            ([[1.0, 2.0], [1.0]], "row 1: 'v' holds 1 numbers; row 0 has 2"),
            ([[1.0, 2.0], None], r"not finite \(rows 1\)"),
            ([[1.0, 2.0], [None, 1.0]], r"not finite \(rows 1\)"),
            ([["a"], ["b"]], "no field that holds a list of numbers. Its fields: v"),
            ([1.0, 2.0], "no field that holds a list of numbers. Its fields: v"),
        ],
    )
    @pytest.mark.parametrize("batch_rows", [1, 10])
    def test_in_parquet(self, tmp_path, column, match, batch_rows):
        pyarrow.parquet.write_table(pyarrow.table({"v": column}), tmp_path / "x.parquet")
        self.fails(tmp_path / "x.parquet", None, match, batch_rows=batch_rows)

    def test_a_file_that_is_no_parquet(self, tmp_path):
        self.fails(tmp_path / "x.parquet", "the cat", "cannot be read as Parquet")

    def test_a_missing_file(self, tmp_path):
        self.fails(tmp_path / "x.npy", None, "There is no file")

    def test_a_file_of_another_format(self, tmp_path):
        self.fails(tmp_path / "x.pt", "the cat", "unknown format")

    def test_a_folder(self, tmp_path):
        self.fails(tmp_path, None, "is a folder")


@pytest.mark.parametrize("rows", [1000, 20_000])  # in each group
def test_a_large_parquet_file_is_never_in_memory_as_a_whole(tmp_path, rows):
    values = pyarrow.array(np.random.default_rng(0).normal(size=20_000 * 256).astype(np.float32))
    table = pyarrow.table([pyarrow.FixedSizeListArray.from_arrays(values, 256)], names=["v"])
    pyarrow.parquet.write_table(table, tmp_path / "x.parquet", row_group_size=rows, compression="none")
    assert (tmp_path / "x.parquet").stat().st_size > 20e6
    del values, table
    before, most = pyarrow.total_allocated_bytes(), 0
    for _ in read_vectors(tmp_path / "x.parquet", batch_rows=512).records:
        most = max(most, pyarrow.total_allocated_bytes() - before)
    assert most < 8e6
