"""Vectors of an index of Elasticsearch or OpenSearch, through their REST interface. No client is needed."""

import os
from collections.abc import Iterator
from typing import Any
from urllib.parse import quote

from unembed.connectors.http import Service
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
from unembed.errors import VectorError

_KEY = "ELASTIC_API_KEY"
_VECTORS = ("dense_vector", "knn_vector")
_TEXTS = ("text", "keyword", "match_only_text", "semantic_text")
_PRECISIONS = {"float": "float32", "byte": "int8", "bfloat16": "bfloat16"}
_OPEN_FOR = "5m"
_MOST = 1000


def read_elasticsearch(location: str, part: str | None, columns: Columns, batch_rows: int) -> VectorSource:
    """Open an index. It is read as it was when the reading began (a scroll, which is closed at the end)."""
    where = f"elasticsearch:{mask_passwords(location)}"
    key = os.environ.get(_KEY)
    headers = {"Authorization": f"ApiKey {key}"} if key else {}
    service = Service(location, where, headers, f"{_KEY}, or https://USER:PASSWORD@HOST")
    # A key that may read an index need not be allowed to ask about the cluster.
    about = (service.find("/", 401, 403) or {}).get("version") or {}
    name, mapping = part, service.find(f"/{quote(part, safe='')}/_mapping") if part else None
    if mapping is None or name is None:
        listed = service.get("/_cat/indices", format="json")
        names = sorted(each["index"] for each in listed if not each["index"].startswith("."))
        name = choose_part(part, names, "index", where)
        mapping = service.get(f"/{quote(name, safe='')}/_mapping")
    service.where = where = f"{where}#{name}"
    path = quote(name, safe="")
    fields: dict[str, dict[str, Any]] = {}
    for index in mapping.values():
        _flatten((index.get("mappings") or {}).get("properties") or {}, "", fields)
    holding = [field for field, about in fields.items() if about.get("type") in _VECTORS and not _is_bits(about)]
    chosen = choose_column(holding, columns.vectors, fields, where)
    texts = _choose_text(
        [field for field, about in fields.items() if about.get("type") in _TEXTS], columns.texts, where
    )
    rows = int(service.get(f"/{path}/_count")["count"])
    version = tuple(int(number) for number in str(about.get("number", "0")).split(".")[:2] if number.isdigit())
    settings = fields[chosen]
    is_open = about.get("distribution") == "opensearch" or settings["type"] == "knn_vector"
    product = "OpenSearch" if is_open else "Elasticsearch"
    source: dict[str, Any] = {"includes": [field for field in (chosen, texts, columns.ids) if field]}
    # Since 9.2 vectors are only given when they are asked for; earlier versions refuse the question.
    if not is_open and (not about or version >= (9, 2)):
        source["exclude_vectors"] = False
    wanted = {"size": min(batch_rows, _MOST), "sort": ["_doc"], "_source": source}
    found = gather(_hits(service, path, wanted, Columns(chosen, columns.ids, texts)), where, "id", batch_rows)
    storage = StorageInfo(
        f"{product} index",
        precision=_PRECISIONS.get(str(settings.get("element_type") or settings.get("data_type") or "float"), "unknown"),
        quantised=_quantised(settings),
        distance=settings.get("similarity") or (settings.get("method") or {}).get("space_type"),
    )
    return VectorSource(where, rows, found, unit="id", storage=storage)


def _choose_text(fields: list[str], wanted: str | None, where: str) -> str | None:
    """Return the field of texts; one inside another is known by the end of its name."""
    if wanted is not None:
        return choose_text(fields, wanted, where)
    by_end = {field.rpartition(".")[2]: field for field in reversed(fields)}
    found = choose_text(by_end, None, where)
    return by_end[found] if found else None


def _flatten(properties: dict[str, Any], before: str, fields: dict[str, dict[str, Any]]) -> None:
    """Collect fields by their names with dots."""
    for name, about in properties.items():
        if isinstance(about.get("properties"), dict):
            _flatten(about["properties"], f"{before}{name}.", fields)
        else:
            fields[f"{before}{name}"] = about


def _is_bits(settings: dict[str, Any]) -> bool:
    return "bit" in (settings.get("element_type"), settings.get("data_type")) or settings.get("data_type") == "binary"


def _quantised(settings: dict[str, Any]) -> str | None:
    kind = (settings.get("index_options") or {}).get("type") or settings.get("compression_level")
    if not kind or kind in ("hnsw", "flat", "1x"):
        return None
    return f"for searching only ({kind})"


def _hits(service: Service, path: str, wanted: dict[str, Any], columns: Columns) -> Iterator[Row]:
    answer = _begin(service, path, wanted)
    scroll = answer.get("_scroll_id")
    try:
        while hits := (answer.get("hits") or {}).get("hits"):
            if (answer.get("_shards") or {}).get("failed"):
                raise VectorError(f"{service.where}: some shards do not answer.", "Repair the cluster, and run again.")
            yield from (_row(hit, columns) for hit in hits)
            answer = service.post("/_search/scroll", {"scroll": _OPEN_FOR, "scroll_id": scroll})
            scroll = answer.get("_scroll_id", scroll)
    finally:
        service.forget("/_search/scroll", {"scroll_id": scroll})
        service.close()


def _begin(service: Service, path: str, wanted: dict[str, Any]) -> Any:
    try:
        return service.post(f"/{path}/_search", wanted, scroll=_OPEN_FOR)
    except VectorError as error:
        if "exclude_vectors" not in wanted["_source"] or "answers 400" not in error.problem:
            raise
        includes = {"includes": wanted["_source"]["includes"]}
        return service.post(f"/{path}/_search", wanted | {"_source": includes}, scroll=_OPEN_FOR)


def _row(hit: dict[str, Any], columns: Columns) -> Row:
    source = hit.get("_source") or {}
    value, text = _value(source, columns.vectors or ""), _value(source, columns.texts or "")
    own = _value(source, columns.ids) if columns.ids else None
    vector = value if isinstance(value, list) else None
    return str(hit["_id"] if own is None else own), vector, text if isinstance(text, str) else None


def _value(source: Any, name: str) -> Any:
    """Return a field, whether its name has dots or it is nested."""
    if isinstance(source, dict) and name in source:
        return source[name]
    first, dot, rest = name.partition(".")
    return _value(source.get(first), rest) if dot and isinstance(source, dict) else None
