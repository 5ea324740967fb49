"""Reading texts from files and folders."""

import gzip
import json
import random

import pyarrow
import pyarrow.parquet
import pytest

from unembed.corpus import lines, read_texts
from unembed.errors import CorpusError, MissingExtraError, UnembedError

TEXTS = ["The owl left at dusk.", "Él dijo «sí».", "私は本を読む。"]


def write(path, content):
    data = content.encode() if isinstance(content, str) else content
    path.write_bytes(gzip.compress(data) if path.suffix == ".gz" else data)
    return path


def as_jsonl(*records):
    return "".join(json.dumps(record) + "\n" for record in records)


def write_parquet(path, **columns):
    pyarrow.parquet.write_table(pyarrow.table(columns), path, row_group_size=2)
    return path


@pytest.mark.parametrize("packed", ["", ".gz"])
@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("a.txt", "\n".join(TEXTS)),
        ("a.TXT", "\r\n".join(TEXTS) + "\r\n"),
        ("a.jsonl", as_jsonl(*({"id": 1, "text": text} for text in TEXTS))),
        ("a.jsonl", "\n\n".join(json.dumps(text) for text in TEXTS)),
        ("a.csv", "id,text\n" + "".join(f'1,"{text}"\n' for text in TEXTS)),
        ("a.csv", "sentence\n" + "\n".join(TEXTS)),
        ("a.tsv", "text\tid\n" + "".join(f"{text}\t1\n" for text in TEXTS)),
    ],
)
def test_every_text_format_gives_its_texts_plain_or_gzipped(tmp_path, name, content, packed):
    assert list(read_texts(write(tmp_path / f"{name}{packed}", content))) == TEXTS


def test_parquet_is_read_in_batches_across_row_groups(tmp_path):
    path = write_parquet(tmp_path / "a.parquet", id=[1, 2, 3], text=TEXTS)
    assert list(read_texts(path)) == TEXTS


@pytest.mark.parametrize("kind", ["large_string", "dictionary"])
def test_parquet_text_may_be_stored_in_any_string_type(tmp_path, kind):
    column = pyarrow.array(TEXTS)
    column = column.dictionary_encode() if kind == "dictionary" else column.cast(pyarrow.large_string())
    assert list(read_texts(write_parquet(tmp_path / "a.parquet", only=column))) == TEXTS


def test_the_field_option_names_the_column_to_read(tmp_path):
    sources = [
        write(tmp_path / "a.jsonl", as_jsonl({"text": "no", "body": "yes"})),
        write(tmp_path / "a.csv", "text,body\nno,yes\n"),
        write(tmp_path / "a.tsv", "text\tbody\nno\tyes\n"),
        write_parquet(tmp_path / "a.parquet", text=["no"], body=["yes"]),
    ]
    assert [list(read_texts(source, field="body")) for source in sources] == [["yes"]] * 4


def test_a_number_is_a_column_of_a_table_without_a_header(tmp_path):
    path = write(tmp_path / "a.tsv.gz", "en\tHello there.\nfr\tBonjour.\n")
    assert list(read_texts(path, field="1")) == ["Hello there.", "Bonjour."]


def test_quotes_in_a_tsv_are_characters_like_any_other(tmp_path):
    path = write(tmp_path / "a.tsv", 'en\t"Hello, he said.\nen\tShe left."\n')
    assert list(read_texts(path, field="1")) == ['"Hello, he said.', 'She left."']


def test_a_quoted_csv_field_may_hold_commas_line_breaks_and_long_texts(tmp_path):
    long = "word " * 60_000
    path = write(tmp_path / "a.csv", f'text\n"one, ""two""\nthree"\n\n"{long}"\n')
    assert list(read_texts(path)) == ['one, "two"\nthree', long]


def test_a_byte_order_mark_is_not_part_of_the_first_column_name(tmp_path):
    path = write(tmp_path / "a.csv", b"\xef\xbb\xbfid,text\n1,hello\n")
    assert list(read_texts(path)) == ["hello"]
    assert list(read_texts(path, field="id")) == ["1"]


def test_a_missing_value_is_the_empty_text(tmp_path):
    assert list(read_texts(write(tmp_path / "a.jsonl", '{"text": null}'))) == [""]
    column = pyarrow.array(["a", None])
    assert list(read_texts(write_parquet(tmp_path / "a.parquet", text=column))) == ["a", ""]


def test_a_folder_is_read_file_by_file_in_the_order_of_names(tmp_path):
    write(tmp_path / "b.txt", "second")
    write(tmp_path / "a.jsonl", '"first"')
    write(tmp_path / "c.csv.gz", "text\nthird")
    write(tmp_path / "notes.md", "ignored")
    assert list(read_texts(tmp_path)) == ["first", "second", "third"]


def test_an_empty_file_has_no_texts(tmp_path):
    for name in ("a.txt", "a.jsonl", "a.csv", "a.tsv.gz"):
        assert list(read_texts(write(tmp_path / name, ""))) == []


@pytest.mark.parametrize(
    ("name", "problem"),
    [
        ("missing.txt", "no file"),
        ("a.pdf", "format"),
        ("a.parquet.gz", "format"),
        ("folder", "no file that can be read"),
    ],
)
def test_what_can_be_known_at_once_is_raised_before_any_text_is_asked_for(tmp_path, name, problem):
    (tmp_path / "folder").mkdir()
    if not name.startswith(("missing", "folder")):
        write(tmp_path / name, "x")
    with pytest.raises(CorpusError, match=problem) as caught:
        read_texts(tmp_path / name)
    assert caught.value.remedy


@pytest.mark.parametrize(
    ("name", "content", "problem"),
    [
        ("a.txt", b"fine\nPNG\0\1\2", r"line 2 holds a NUL byte"),
        ("a.txt", "fine\nplus ça\n".encode("latin-1"), r"not UTF-8 text: line 2"),
        ("a.jsonl", '{"text": "fine"}\n{"text": ', r"line 2 is not JSON"),
        ("a.jsonl", "[" * 100_000, r"line 1 is not JSON"),
        ("a.jsonl", "[1, 2]\n", r"line 1 holds list"),
        ("a.jsonl", '{"text": 7}\n', r"line 1: field 'text' holds int"),
        ("a.jsonl", '{"only": "a"}\n', r"no field 'text'. Its fields: only"),
        ("a.csv", 'text\n"open\nand never closed\n', r"line 3 is not CSV"),
        ("a.csv", "text\nHello, world\n", r"line 2 has 2 columns, where 1 were expected"),
        ("a.tsv", "id\ttext\n1\n", r"line 2 has 1 columns, where 2 were expected"),
        ("a.csv", "id,label\n1,good\n", r"no field 'text'. Its fields: id, label"),
        ("a.parquet", b"PAR1 is not enough", r"cannot be read as Parquet"),
    ],
)
def test_a_file_that_is_not_what_it_should_be_says_where_and_what_to_do(tmp_path, name, content, problem):
    with pytest.raises(CorpusError, match=problem) as caught:
        list(read_texts(write(tmp_path / name, content)))
    assert name in caught.value.problem
    assert caught.value.remedy


def test_a_truncated_parquet_file_is_an_error_not_a_short_corpus(tmp_path):
    path = write_parquet(tmp_path / "a.parquet", text=TEXTS)
    path.write_bytes(path.read_bytes()[:-20])
    with pytest.raises(CorpusError, match="cannot be read as Parquet"):
        list(read_texts(path))


def test_a_parquet_column_of_numbers_is_not_text(tmp_path):
    with pytest.raises(CorpusError, match="field 'id' holds int"):
        list(read_texts(write_parquet(tmp_path / "a.parquet", id=[1], text=["a"]), field="id"))


def test_a_truncated_or_false_gzip_file_is_an_error_not_a_short_corpus(tmp_path):
    content = "".join(f"{random.Random(number).random()}\n" for number in range(2000))
    whole = write(tmp_path / "a.txt.gz", content).read_bytes()
    for damaged in (whole[: len(whole) // 2], whole[:500] + b"x" * 500, b"not gzip at all"):
        (tmp_path / "a.txt.gz").write_bytes(damaged)
        with pytest.raises(CorpusError, match="truncated or not a gzip file"):
            list(read_texts(tmp_path / "a.txt.gz"))


def test_a_missing_field_is_answered_with_the_nearest_one(tmp_path):
    sources = [
        write(tmp_path / "a.jsonl", as_jsonl({"id": 1, "content": "a"})),
        write(tmp_path / "a.csv", "id,content\n1,a\n"),
        write_parquet(tmp_path / "a.parquet", id=[1], content=["a"]),
    ]
    for source in sources:
        with pytest.raises(CorpusError, match="Its fields: id, content") as caught:
            list(read_texts(source, field="contents"))
        assert "did you mean 'content'?" in caught.value.remedy


def test_a_table_without_a_header_is_answered_with_how_to_give_a_column_number(tmp_path):
    path = write(tmp_path / "a.tsv", f"en\t{'A rather long sentence about nothing. ' * 3}\n")
    with pytest.raises(CorpusError, match=r"no field 'text'\. Its fields: en, A rather long sentence about…") as caught:
        list(read_texts(path))
    assert "`field=1`" in caught.value.remedy


def test_a_column_number_beyond_the_last_is_an_error(tmp_path):
    with pytest.raises(CorpusError, match="has 2 columns, where 6 were expected"):
        list(read_texts(write(tmp_path / "a.tsv", "en\thello\n"), field="5"))


def test_a_file_without_line_ends_is_refused_before_it_fills_the_memory(tmp_path, monkeypatch):
    monkeypatch.setattr(lines, "_LONGEST_LINE", 1000)
    with pytest.raises(CorpusError, match="line 2 is longer"):
        list(read_texts(write(tmp_path / "a.txt", "short\n" + "x" * 5000)))


def test_a_file_that_cannot_be_opened_is_a_user_error(tmp_path, monkeypatch):
    path = write(tmp_path / "a.txt", "x")

    def refuse(*_):
        raise PermissionError(13, "Permission denied")

    # The tests may run as root, whom no permission stops.
    monkeypatch.setattr(lines, "_open", refuse)
    with pytest.raises(UnembedError, match="Permission denied"):
        list(read_texts(path))


def test_without_pyarrow_parquet_says_what_to_install(tmp_path, monkeypatch):
    path = write_parquet(tmp_path / "a.parquet", text=TEXTS)
    monkeypatch.setattr("unembed.errors.find_spec", lambda module: None)
    with pytest.raises(MissingExtraError, match=r"pip install 'unembed\[train\]'"):
        list(read_texts(path))
