"""Ids and texts of a source: found by their usual names, or chosen by the user."""

import json

import numpy as np
import pandas
import pytest

import stores
from stores import EXPECTED, TEXTS, VECTORS, read
from unembed.connectors import open_vectors
from unembed.errors import VectorError


def write(path, ids="id", texts="text"):
    """A file of one's own ids and texts, in the format of its ending."""
    names = [f"doc-{row}" for row in range(len(VECTORS))]
    frame = pandas.DataFrame({ids: names, texts: TEXTS, "note": "x", "embedding": VECTORS.tolist()})
    if path.suffix == ".parquet":
        frame.to_parquet(path)
    elif path.suffix == ".csv":
        frame.to_csv(path, index=False)
    elif path.suffix == ".json":
        path.write_text(json.dumps(frame.to_dict("records")))
    else:
        path.write_text("".join(f"{json.dumps(record)}\n" for record in frame.to_dict("records")))
    return str(path)


FORMATS = ["x.parquet", "x.csv", "x.jsonl", "x.json"]


@pytest.mark.parametrize("name", FORMATS)
@pytest.mark.parametrize(
    ("columns", "options"),
    [({}, {}), ({"ids": "key", "texts": "words"}, {"id_column": "key", "text_column": "words"})],
    ids=["usual names", "chosen"],
)
def test_a_file_gives_its_own_ids_and_texts(name, columns, options, tmp_path):
    _, vectors, ids, texts = read(write(tmp_path / name, **columns), **options)
    assert np.abs(vectors - VECTORS[EXPECTED]).max() < 1e-6
    assert ids == [f"doc-{row}" for row in EXPECTED]
    assert texts == [TEXTS[row] for row in EXPECTED]


@pytest.mark.parametrize("name", FORMATS)
@pytest.mark.parametrize("option", ["id_column", "text_column"])
def test_a_column_that_is_not_there_is_an_error(name, option, tmp_path):
    with pytest.raises(VectorError, match="has no field 'nowhere'"):
        list(open_vectors(write(tmp_path / name), **{option: "nowhere"}).records)


def test_a_column_of_numbers_that_names_rows_is_no_coordinate(tmp_path):
    (tmp_path / "x.csv").write_text("number,a,b\n7,1,2\n8,3,4\n")
    (batch,) = open_vectors(str(tmp_path / "x.csv"), id_column="number").records
    assert batch.ids == ["7", "8"]
    assert batch.vectors.tolist() == [[1, 2], [3, 4]]


def test_a_row_with_a_name_is_named_in_errors(tmp_path):
    (tmp_path / "x.jsonl").write_text('{"id": "a", "e": [1, 2]}\n{"id": "b", "e": [1]}\n')
    with pytest.raises(VectorError, match="id b has 1 numbers; id a has 2"):
        list(open_vectors(str(tmp_path / "x.jsonl")).records)


@pytest.mark.parametrize("kind", ["npy", "faiss"])
def test_a_source_of_vectors_alone_has_no_columns_to_choose(kind, tmp_path):
    uri = stores.ON_DISK[kind](tmp_path / "store", VECTORS, TEXTS)
    with pytest.raises(VectorError, match="no columns") as caught:
        open_vectors(uri, text_column="text")
    assert caught.value.remedy == "Leave out `text_column`."


def test_metadata_of_chroma_can_be_the_text_and_the_id(tmp_path):
    import chromadb

    client = chromadb.PersistentClient(str(tmp_path), settings=chromadb.Settings(anonymized_telemetry=False))
    collection = client.create_collection("docs")
    collection.add(ids=["1", "2"], embeddings=VECTORS[:2], metadatas=[{"body": "one", "key": 7}, {"body": "two"}])
    client.close()
    (batch,) = open_vectors(f"chroma:{tmp_path}#docs", id_column="key", text_column="body").records
    assert list(batch.ids) == ["7", "2"]
    assert batch.texts == ["one", "two"]


def test_the_payload_of_qdrant_can_be_the_text_and_the_id(tmp_path):
    from qdrant_client import QdrantClient, models

    client = QdrantClient(path=str(tmp_path))
    client.create_collection("docs", vectors_config=models.VectorParams(size=8, distance=models.Distance.DOT))
    payload = {"key": "k-1", "title": "a title", "text": "a text"}
    client.upsert("docs", [models.PointStruct(id=1, vector=VECTORS[0].tolist(), payload=payload)])
    client.close()
    (batch,) = open_vectors(f"qdrant:{tmp_path}#docs", id_column="key", text_column="title").records
    assert (batch.ids, batch.texts) == (["k-1"], ["a title"])
