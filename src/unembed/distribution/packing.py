"""The values of a shard as bytes, on their way from one process to another. Nothing is pickled."""

import json
from io import BytesIO
from typing import Any

import numpy as np

from unembed.distribution.shards import Shard, Values
from unembed.errors import UnembedError

_OTHERS = "values.json"
_ERROR = -1


def pack(number: int, values: Values) -> dict[str, Any]:
    """Return a shard as a row of two columns; arrays and JSON values become the bytes of an .npz file."""
    arrays: Values = {name: value for name, value in values.items() if isinstance(value, np.ndarray)}
    others = json.dumps({name: value for name, value in values.items() if name not in arrays})
    file = BytesIO()
    np.savez(file, **arrays | {_OTHERS: np.frombuffer(others.encode(), dtype=np.uint8)})
    return {"number": number, "content": file.getvalue()}


def unpack(row: dict[str, Any]) -> Shard:
    """Return the shard that :func:`pack` was given, or raise the error that :func:`pack_error` was given."""
    with np.load(BytesIO(row["content"]), allow_pickle=False) as file:
        arrays: Values = {name: file[name] for name in file.files}
    values = arrays | json.loads(arrays.pop(_OTHERS).tobytes())
    if row["number"] == _ERROR:
        raise UnembedError(**values)
    return row["number"], values


def pack_error(error: UnembedError) -> dict[str, Any]:
    """Return a user's mistake as a row, so that it reaches the user as it is."""
    return pack(_ERROR, {"problem": error.problem, "remedy": error.remedy})
