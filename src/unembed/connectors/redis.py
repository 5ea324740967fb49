"""Vectors of a Redis server: of an index of its search engine, of hashes that hold them as bytes, or of a vector set.

Only commands that read are sent. Keys are listed by SCAN, which does not block the server.
"""

import json
import os
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from unembed.connectors.source import (
    Columns,
    Row,
    StorageInfo,
    VectorSource,
    choose_column,
    choose_part,
    choose_text,
    gather,
)
from unembed.connectors.uri import mask_passwords
from unembed.errors import VectorError, first_line, require_extra

_PASSWORD = "REDISCLI_AUTH"
_SECONDS = 30
_FORMATS = {
    "FLOAT32": "<f4",
    "FLOAT64": "<f8",
    "FLOAT16": "<f2",
    "BFLOAT16": "<u2",
    "INT8": "i1",
    "UINT8": "u1",
}
_SAMPLED = 20
_EXPECTED = "Name an index, a vector set, or the keys of hashes: redis://HOST#NAME or redis://HOST#PREFIX*"


@dataclass(frozen=True)
class _Keys:
    """Keys that hold a vector each, and where in them it is."""

    patterns: list[str]
    in_json: bool
    vectors: str
    form: str
    texts: str | None
    ids: str | None


def read_redis(location: str, part: str | None, columns: Columns, batch_rows: int) -> VectorSource:
    """Open what ``part`` names: an index, a vector set, or keys such as ``doc:*``."""
    require_extra("redis", "redis")
    import redis

    where = mask_passwords(location)
    try:
        client = redis.Redis.from_url(
            location,
            password=None if "@" in location else os.environ.get(_PASSWORD),
            socket_timeout=_SECONDS,
            socket_connect_timeout=_SECONDS,
            protocol=2,
            client_name="unembed",
        )
    except ValueError as error:
        raise VectorError(f"{where} is no address of Redis: {first_line(error)}.", _EXPECTED) from error
    server = _Server(client, where)
    indexes = server.indexes()
    name = choose_part(None, indexes, "index", where) if part is None and indexes else part
    if name is None:
        raise VectorError(f"{where} does not say which keys hold vectors.", _EXPECTED)
    where = server.where = f"{where}#{name}"
    if name in indexes:
        return _read_index(server, name, columns, batch_rows)
    if server.ask("TYPE", name) == b"vectorset":
        return _read_vector_set(server, name, columns, batch_rows)
    return _read_hashes(server, name, columns, batch_rows)


class _Server:
    def __init__(self, client: Any, where: str) -> None:
        self.client = client
        self.where = where

    def ask(self, *command: Any) -> Any:
        """Send a command that reads, and turn what can go wrong into an error with a remedy."""
        return self.ask_all([command])[0]

    def ask_all(self, commands: list[tuple[Any, ...]]) -> list[Any]:
        """Send several commands at once."""
        import redis

        try:
            if len(commands) == 1:
                return [self.client.execute_command(*commands[0])]
            pipeline = self.client.pipeline(transaction=False)
            for command in commands:
                pipeline.execute_command(*command)
            return list(pipeline.execute())
        except (redis.AuthenticationError, redis.exceptions.NoPermissionError) as error:
            raise VectorError(
                f"{self.where} refuses these credentials: {first_line(error)}",
                f"Give redis://USER:PASSWORD@HOST, or set {_PASSWORD}, of a user that may read it.",
            ) from error
        except redis.TimeoutError as error:
            raise VectorError(
                f"{self.where} did not answer within {_SECONDS} seconds.", "Check that it runs, and run again."
            ) from error
        except redis.ConnectionError as error:
            raise VectorError(f"{self.where} cannot be reached: {first_line(error)}", "Check that it runs.") from error
        except redis.ResponseError as error:
            older = "unknown command" in str(error).lower()
            remedy = "This needs a newer Redis: vector sets can be listed since version 8.4." if older else _EXPECTED
            raise VectorError(f"{self.where} answers: {first_line(error)}", remedy) from error

    def indexes(self) -> list[str]:
        """Return the indexes of the search engine; none if it has no such engine, or an older one."""
        import redis

        try:
            return [_text(name) for name in self.client.execute_command("FT._LIST")]
        except redis.exceptions.NoPermissionError:
            return []
        except redis.AuthenticationError:
            self.ask("PING")  # says what is wrong
            return []
        except redis.ResponseError as error:
            if "NOAUTH" in str(error):
                self.ask("PING")
            return []
        except redis.RedisError:
            self.ask("PING")
            return []

    def scan(self, patterns: list[str], kind: str, count: int) -> Iterator[list[bytes]]:
        """Yield the keys of a type, some at a time."""
        for pattern in patterns:
            cursor: Any = 0
            while True:
                # The reply's own form is asked for by a cursor: the client turns it into a number and a list.
                cursor, keys = self.ask("SCAN", cursor, "MATCH", pattern, "COUNT", count, "TYPE", kind)
                if keys:
                    yield list(keys)
                if not int(cursor):
                    break


def _read_index(server: _Server, name: str, columns: Columns, batch_rows: int) -> VectorSource:
    facts = _pairs(server.ask("FT.INFO", name))
    definition = _pairs(facts.get("index_definition", []))
    in_json = _text(definition.get("key_type", b"HASH")).upper() == "JSON"
    prefixes = [_escape(_text(prefix)) for prefix in definition.get("prefixes", [])] or [""]
    attributes = [_pairs(each) for each in facts.get("attributes", [])]
    vectors = {_text(each["attribute"]): each for each in attributes if _text(each.get("type", b"")) == "VECTOR"}
    texts = {_text(each["attribute"]): each for each in attributes if _text(each.get("type", b"")) in ("TEXT", "TAG")}
    chosen = choose_column(list(vectors), columns.vectors, [*vectors, *texts], server.where)
    form = _text(vectors[chosen].get("data_type", b"FLOAT32")).upper()
    if form not in _FORMATS:
        raise VectorError(f"{server.where} holds vectors of {form}, which are not known.", "Export them to a file.")
    text = choose_text(texts, columns.texts, server.where)
    keys = _Keys(
        [f"{prefix}*" for prefix in prefixes],
        in_json,
        _text(vectors[chosen].get("identifier", chosen.encode())),
        form,
        _text(texts[text].get("identifier", text.encode())) if text else None,
        columns.ids,
    )
    distance = vectors[chosen].get("distance_metric")
    storage = StorageInfo("Redis index", precision=form.lower(), distance=_text(distance).lower() if distance else None)
    rows = int(_text(facts["num_docs"])) if "num_docs" in facts else None
    return VectorSource(server.where, rows, _gather(server, keys, batch_rows), unit="key", storage=storage)


def _read_hashes(server: _Server, pattern: str, columns: Columns, batch_rows: int) -> VectorSource:
    pattern = pattern if "*" in pattern else f"{_escape(pattern)}*"
    first = next(server.scan([pattern], "hash", _SAMPLED * 10), None)
    if first is None:
        raise VectorError(f"{server.where}: there is no index, no vector set and no hash of this name.", _EXPECTED)
    fields: dict[str, bytes] = {}
    for reply in server.ask_all([("HGETALL", key) for key in first[:_SAMPLED]]):
        found = reply if isinstance(reply, dict) else dict(zip(reply[::2], reply[1::2], strict=True))
        for name, value in found.items():
            if not _looks_like_numbers(fields.get(_text(name), b"")):
                fields[_text(name)] = value
    holding = [name for name, value in fields.items() if _looks_like_numbers(value)]
    chosen = choose_column(holding, columns.vectors, fields, server.where)
    texts = choose_text([name for name in fields if name not in holding], columns.texts, server.where)
    keys = _Keys([pattern], False, chosen, "FLOAT32", texts, columns.ids)
    storage = StorageInfo("Redis hashes", precision="float32")
    return VectorSource(server.where, None, _gather(server, keys, batch_rows), unit="key", storage=storage)


def _gather(server: _Server, keys: _Keys, batch_rows: int) -> Any:
    return gather(_values(server, keys, batch_rows), server.where, "key", batch_rows)


def _values(server: _Server, keys: _Keys, batch_rows: int) -> Iterator[Row]:
    wanted = [name for name in (keys.vectors, keys.texts, keys.ids) if name]
    # The type of a JSON document is called so by its module.
    for found in server.scan(keys.patterns, "ReJSON-RL" if keys.in_json else "hash", batch_rows):
        command = "JSON.GET" if keys.in_json else "HMGET"
        for key, reply in zip(found, server.ask_all([(command, key, *wanted) for key in found]), strict=True):
            if reply is None:  # gone since it was listed
                continue
            values = _from_json(reply, wanted) if keys.in_json else dict(zip(wanted, reply, strict=True))
            own = values.get(keys.ids) if keys.ids else None
            text = values.get(keys.texts) if keys.texts else None
            text = _text(text) if isinstance(text, bytes) else text
            name = _text(own) if isinstance(own, bytes) else own
            yield (
                _text(key) if name is None else str(name),
                _numbers(values.get(keys.vectors), keys.form, server.where, key),
                text if isinstance(text, str) else None,
            )


def _from_json(reply: Any, wanted: list[str]) -> dict[str, Any]:
    """Return the values at some paths. For several paths, an object has them by path; a path gives all its matches."""
    document = json.loads(reply)
    found = document if len(wanted) > 1 else {wanted[0]: document}
    return {
        path: value[0] if path.startswith("$") and isinstance(value, list) and value else value
        for path, value in found.items()
    }


def _numbers(value: Any, form: str, where: str, key: bytes) -> Any:
    if value is None or isinstance(value, list):
        return value
    kind = np.dtype(_FORMATS[form])
    if not isinstance(value, bytes) or not value or len(value) % kind.itemsize:
        raise VectorError(
            f"{where}, key {_text(key)} holds no vector of {form.lower()} numbers.", "Fix or remove it, and run again."
        )
    numbers = np.frombuffer(value, kind)
    return (numbers.astype(np.uint32) << 16).view(np.float32) if form == "BFLOAT16" else numbers


def _read_vector_set(server: _Server, name: str, columns: Columns, batch_rows: int) -> VectorSource:
    replace(columns, texts=None).refuse(f"{server.where} is a vector set: its elements name themselves.")
    facts = _pairs(server.ask("VINFO", name))
    kind = _text(facts.get("quant-type", b"unknown"))
    quantised = {"int8": "whole numbers of 8 bits", "bin": "single bits"}.get(kind)
    storage = StorageInfo(
        "Redis vector set",
        precision="float32" if quantised is None else "as quantised",
        quantised=quantised,
        distance="cosine",
    )
    rows = int(server.ask("VCARD", name))
    found = gather(_elements(server, name, columns, batch_rows), server.where, "element", batch_rows)
    return VectorSource(server.where, rows, found, unit="element", storage=storage)


def _elements(server: _Server, name: str, columns: Columns, batch_rows: int) -> Iterator[Row]:
    start: bytes = b"-"
    while elements := server.ask("VRANGE", name, start, "+", batch_rows):
        replies = server.ask_all(
            [command for each in elements for command in (("VEMB", name, each), ("VGETATTR", name, each))]
        )
        for element, vector, attributes in zip(elements, replies[::2], replies[1::2], strict=True):
            yield (
                _text(element),
                None if vector is None else [float(number) for number in vector],
                _said(attributes, columns.texts),
            )
        start = b"(" + elements[-1]


def _said(attributes: Any, field: str | None) -> str | None:
    """Return the text among the attributes of an element, which are JSON."""
    try:
        values = json.loads(attributes or "{}")
    except ValueError:
        return None
    text = values.get(field or choose_text(map(str, values), None, "") or "") if isinstance(values, dict) else None
    return text if isinstance(text, str) else None


def _pairs(reply: Any) -> dict[str, Any]:
    """Return a reply of names and values as a dictionary."""
    if isinstance(reply, dict):
        return {_text(name): value for name, value in reply.items()}
    return {_text(name): value for name, value in zip(reply[::2], reply[1::2], strict=False)}


def _text(value: Any) -> str:
    return value.decode("utf-8", "backslashreplace") if isinstance(value, bytes) else str(value)


def _escape(name: str) -> str:
    """Return a name in which no letter is part of a pattern."""
    return "".join(f"\\{letter}" if letter in "*?[]\\" else letter for letter in name)


def _looks_like_numbers(value: bytes) -> bool:
    if len(value) < 8 or len(value) % 4:
        return False
    numbers = np.frombuffer(value, "<f4")
    try:
        is_text = value.decode().isprintable()
    except UnicodeDecodeError:
        is_text = False
    return not is_text and bool(np.isfinite(numbers).all()) and float(np.abs(numbers).max()) < 1e9
