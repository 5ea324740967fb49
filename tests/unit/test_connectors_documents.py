"""JSON documents of vectors: arrays, records, columns, and what embedding services answer."""

import base64
import gzip
import json

import numpy as np
import pytest

from unembed.connectors import open_vectors
from unembed.errors import VectorError

VECTORS = [[0.5, -0.25, 1.0], [0.125, 2.0, -1.0]]
DATA = [{"object": "embedding", "index": index, "embedding": vector} for index, vector in enumerate(VECTORS)]


def read(tmp_path, document, name="x.json"):
    (tmp_path / name).write_text(json.dumps(document))
    source = open_vectors(str(tmp_path / name))
    (batch,) = source.records
    assert batch.vectors.tolist() == VECTORS
    return source, batch


@pytest.mark.parametrize(
    "document",
    [
        VECTORS,
        [{"embedding": vector, "n": 1} for vector in VECTORS],
        {"object": "list", "data": DATA, "model": "m"},
        {"object": "list", "data": DATA[::-1]},
        {"embeddings": VECTORS, "model": "m"},
        {"data": [{"embedding": base64.b64encode(np.array(v, "<f4").tobytes()).decode()} for v in VECTORS]},
    ],
    ids=["arrays", "records", "OpenAI", "out of order", "lists", "base64"],
)
def test_every_usual_form_is_read(document, tmp_path):
    read(tmp_path, document)


def test_columns_of_one_object_give_ids_and_texts(tmp_path):
    _, batch = read(tmp_path, {"ids": ["a", "b"], "embeddings": VECTORS, "documents": ["x", "y"], "metadatas": None})
    assert (batch.ids, batch.texts) == (["a", "b"], ["x", "y"])


def test_the_answer_of_a_service_names_its_model(tmp_path):
    source, _ = read(tmp_path, {"data": DATA, "model": "text-embedding-3-small"})
    assert source.storage.encoder == "text-embedding-3-small"


def test_one_vector_is_a_document_too_and_it_may_be_gzipped(tmp_path):
    with gzip.open(tmp_path / "x.json.gz", "wt") as file:
        json.dump(VECTORS[0], file)
    (batch,) = open_vectors(str(tmp_path / "x.json.gz")).records
    assert batch.vectors.tolist() == VECTORS[:1]


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("[1, 2", "is not JSON"),
        ("[1, 2]\n[3, 4]\n", "is not JSON"),
        ("[]", "holds no vectors"),
        ("7", "holds no vectors"),
        ('[[1, 2], "x"]', "row 1 is neither a list of numbers nor an object"),
        ('{"a": "b"}', "has no field that holds a list of numbers"),
        ("[[1, 2], [3]]", "row 1 has 1 numbers; row 0 has 2"),
    ],
)
def test_what_is_no_document_of_vectors_is_an_error(text, problem, tmp_path):
    (tmp_path / "x.json").write_text(text)
    with pytest.raises(VectorError, match=problem):
        list(open_vectors(str(tmp_path / "x.json")).records)
