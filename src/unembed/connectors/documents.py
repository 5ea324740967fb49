"""Vectors in one JSON document: arrays, records, columns, or the answer of an embedding service."""

import base64
import binascii
import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from unembed.connectors.lines import choose_vector, is_vector, read_file_lines, to_row
from unembed.connectors.source import Columns, Row, StorageInfo, VectorSource, gather, unchanged
from unembed.errors import VectorError, first_line

_REMEDY = "Give an array of vectors, an array of objects with a vector in each, or the answer of an embedding service."
# Columns of one object, as Chroma's `get` and some services give them: what each becomes in a record.
_LISTS = {"embeddings": "embedding", "vectors": "embedding", "ids": "id", "documents": "text", "texts": "text"}


def read_json(path: Path, columns: Columns, batch_rows: int) -> VectorSource:
    """Read a ``.json`` file as a whole."""
    try:
        document = json.loads("".join(read_file_lines(path)))
    except (ValueError, RecursionError) as error:
        raise VectorError(
            f"{path} is not JSON: {first_line(error)}.", "If it has a vector on each line, call it .jsonl."
        ) from error
    items = _items(document)
    if not items:
        raise VectorError(f"{path} holds no vectors.", _REMEDY)
    model = document.get("model") if isinstance(document, dict) else None
    storage = StorageInfo(
        "JSON file",
        precision="decimal",
        encoder=model if isinstance(model, str) else None,
        encoder_said_by="the field 'model' of the file" if isinstance(model, str) else "",
    )
    rows = gather(_rows(items, columns, str(path)), str(path), "row", batch_rows)
    return VectorSource(str(path), len(items), unchanged([path], str(path), rows), storage=storage)


def _items(document: Any) -> list[Any]:
    """Return the vectors or records of a document."""
    if is_vector(document):
        return [document]
    if isinstance(document, list):
        return document
    if not isinstance(document, dict):
        return []
    # OpenAI and those who follow it: {"data": [{"embedding": [...], "index": 0}], "model": ...}.
    for value in document.values():
        if isinstance(value, list) and value and all(isinstance(item, dict) for item in value):
            return sorted(value, key=_index) if all("index" in item for item in value) else value
    lists = {key: value for key, value in document.items() if key in _LISTS and isinstance(value, list)}
    vectors = next((value for key, value in lists.items() if _LISTS[key] == "embedding"), None)
    if vectors and all(isinstance(vector, list) for vector in vectors):
        whole = {_LISTS[key]: value for key, value in lists.items() if len(value) == len(vectors)}
        return [dict(zip(whole, row, strict=True)) for row in zip(*whole.values(), strict=True)]
    return [document]


def _index(item: dict[str, Any]) -> int:
    return item["index"] if isinstance(item["index"], int) else 0


def _rows(items: list[Any], columns: Columns, path: str) -> Iterator[Row]:
    for number, item in enumerate(items):
        where = f"{path}, row {number}"
        if isinstance(item, dict):
            record = {key: _decoded(value) if key == "embedding" else value for key, value in item.items()}
            columns = replace(columns, vectors=choose_vector(record, columns, where))
            yield to_row(record, columns, number, where)
        elif is_vector(item):
            yield number, item, None
        else:
            raise VectorError(f"{where} is neither a list of numbers nor an object.", _REMEDY)


def _decoded(value: Any) -> Any:
    """Return a vector that a service sent as base64 of float32; anything else as it is."""
    if not isinstance(value, str):
        return value
    try:
        return np.frombuffer(base64.b64decode(value, validate=True), dtype="<f4").tolist()
    except (binascii.Error, ValueError):
        return value
