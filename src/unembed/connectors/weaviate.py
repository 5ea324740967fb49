"""Vectors of a Weaviate server, through its REST interface. No client is needed."""

import os
from collections.abc import Iterator
from typing import Any

from unembed.connectors.http import Service
from unembed.connectors.source import (
    Columns,
    Row,
    StorageInfo,
    VectorBatch,
    VectorSource,
    choose_part,
    choose_text,
    gather,
)
from unembed.connectors.uri import mask_passwords
from unembed.errors import VectorError

_KEY = "WEAVIATE_API_KEY"
_MOST = 1000
_COMPRESSIONS = ("pq", "bq", "sq", "rq")


def read_weaviate(location: str, part: str | None, columns: Columns, batch_rows: int) -> VectorSource:
    """Open a collection; ``part`` is its name, with ``@TENANT`` behind it where it has tenants."""
    where = f"weaviate:{mask_passwords(location)}"
    key = os.environ.get(_KEY)
    service = Service(location, where, {"Authorization": f"Bearer {key}"} if key else {}, _KEY)
    classes = {each["class"]: each for each in service.get("/v1/schema").get("classes") or []}
    wanted, _, tenant = (part or "").partition("@")
    name = choose_part(wanted or None, list(classes), "collection", where)
    described = classes[name]
    if (described.get("multiTenancyConfig") or {}).get("enabled") and not tenant:
        raise VectorError(f"{where}#{name} has tenants.", f"Name one: ...#{name}@TENANT")
    service.where = where = f"{where}#{name}{f'@{tenant}' if tenant else ''}"
    named = described.get("vectorConfig") or {}
    if named:
        vector = choose_part(columns.vectors, list(named), "named vector", where, how="`column=NAME`")
    elif columns.vectors is not None:
        raise VectorError(f"{where} has one vector per object, without a name.", "Leave out `column`.")
    else:
        vector = None
    fields = [each["name"] for each in described.get("properties") or []]
    if columns.texts is not None:
        choose_text(fields, columns.texts, where)
    rows = _count(service, name, tenant)

    def records() -> Iterator[VectorBatch]:
        size = min(batch_rows, _MOST)
        yield from gather(_objects(service, name, tenant, vector, columns, size), where, "object", batch_rows)
        now = _count(service, name, tenant)
        if now != rows:
            raise VectorError(
                f"{where} changed while it was read: it had {rows:,} objects, and now has {now:,}.",
                "Stop what writes to it, or read a backup of it, and run again.",
            )
        service.close()

    storage = _storage_info(named.get(vector) if vector else described)
    return VectorSource(where, rows, records(), unit="object", storage=storage)


def _count(service: Service, name: str, tenant: str) -> int:
    chosen = f'(tenant: "{tenant}")' if tenant.replace("-", "").replace("_", "").isalnum() else ""
    query = f"{{ Aggregate {{ {name}{chosen} {{ meta {{ count }} }} }} }}"
    try:
        return int(service.post("/v1/graphql", {"query": query})["data"]["Aggregate"][name][0]["meta"]["count"])
    except (KeyError, TypeError, IndexError, ValueError) as error:
        raise VectorError(f"{service.where} does not say how many objects it has.", "Check the address.") from error


def _objects(
    service: Service, name: str, tenant: str, vector: str | None, columns: Columns, size: int
) -> Iterator[Row]:
    after = ""
    while True:
        page = service.get(
            "/v1/objects", **{"class": name}, limit=size, after=after, include="vector", tenant=tenant or None
        )
        objects = page.get("objects") or []
        for each in objects:
            yield _row(each, vector, columns)
        if not objects:
            return
        after = objects[-1]["id"]


def _row(each: dict[str, Any], vector: str | None, columns: Columns) -> Row:
    value = (each.get("vectors") or {}).get(vector) if vector else each.get("vector")
    properties = each.get("properties") or {}
    text = properties.get(columns.texts or choose_text(map(str, properties), None, "") or "")
    own = properties.get(columns.ids) if columns.ids else None
    return str(each["id"] if own is None else own), value or None, text if isinstance(text, str) else None


def _storage_info(settings: dict[str, Any] | None) -> StorageInfo:
    settings = settings or {}
    index = settings.get("vectorIndexConfig") or {}
    packed = [name for name in _COMPRESSIONS if isinstance(index.get(name), dict) and index[name].get("enabled")]
    vectorizer = settings.get("vectorizer")
    # A collection with one vector keeps the module's name and its settings apart, one with named vectors together.
    modules = vectorizer if isinstance(vectorizer, dict) else settings.get("moduleConfig") or {}
    encoder = next(
        (str(each["model"]) for each in modules.values() if isinstance(each, dict) and each.get("model")), None
    )
    return StorageInfo(
        "Weaviate collection",
        precision="float32",
        # The server keeps the originals beside the compressed vectors, and returns the originals.
        quantised=f"for searching only ({', '.join(packed)})" if packed else None,
        distance=index.get("distance"),
        encoder=encoder,
        encoder_said_by="the collection's vectorizer" if encoder else "",
    )
