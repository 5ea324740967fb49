"""Vectors of a Pinecone index, through its REST interface. No client is needed."""

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
from unembed.errors import VectorError

_KEY = "PINECONE_API_KEY"
_CONTROLLER = "PINECONE_CONTROLLER_HOST"
_USUAL_CONTROLLER = "https://api.pinecone.io"
_VERSION = "2025-04"
_MOST = 100


def read_pinecone(location: str, part: str | None, columns: Columns, batch_rows: int) -> VectorSource:
    """Open a namespace of an index: its name, or its host; ``part`` is the namespace.

    Pinecone bills reads. Only serverless indexes can list their ids.
    """
    where = f"pinecone:{location}"
    columns.refuse_vectors(f"{where} has one vector per record.")
    key = os.environ.get(_KEY)
    if not key:
        raise VectorError(f"{where} needs a key.", f"Set {_KEY}.")
    headers = {"Api-Key": key, "X-Pinecone-API-Version": _VERSION}
    described: dict[str, Any] = {}
    host = location
    if not location.startswith(("http://", "https://")):
        controller = Service(os.environ.get(_CONTROLLER) or _USUAL_CONTROLLER, where, headers, _KEY)
        indexes = {each["name"]: each for each in controller.get("/indexes").get("indexes") or []}
        controller.close()
        described = indexes[choose_part(location or None, list(indexes), "index", "pinecone:", how="pinecone:NAME")]
        host = described["host"]
        host = host if "://" in host else f"https://{host}"
    service = Service(host, where, headers, _KEY)
    spaces = {
        name: int(each.get("vectorCount") or 0)
        for name, each in (service.post("/describe_index_stats", {}).get("namespaces") or {}).items()
    }
    # The namespace that has no name is written so.
    spaces = {name or "__default__": count for name, count in spaces.items()}
    namespace = choose_part(part, list(spaces), "namespace", where)
    service.where = where = f"{where}#{namespace}"

    def records() -> Iterator[VectorBatch]:
        yield from gather(_records(service, namespace, columns), where, "id", batch_rows)
        service.close()

    encoder = (described.get("embed") or {}).get("model")
    storage = StorageInfo(
        "Pinecone index",
        precision="float32",
        distance=described.get("metric"),
        encoder=encoder,
        encoder_said_by="the index's own embedding" if encoder else "",
    )
    return VectorSource(where, spaces[namespace], records(), unit="id", storage=storage)


def _records(service: Service, namespace: str, columns: Columns) -> Iterator[Row]:
    token = None
    while True:
        page = service.get("/vectors/list", namespace=namespace, limit=_MOST, paginationToken=token)
        ids = [each["id"] for each in page.get("vectors") or []]
        if ids:
            found = service.get("/vectors/fetch", ids=ids, namespace=namespace).get("vectors") or {}
            # What was deleted since it was listed is not there.
            yield from (_row(found[each], columns) for each in ids if each in found)
        token = (page.get("pagination") or {}).get("next")
        if not token:
            return


def _row(record: dict[str, Any], columns: Columns) -> Row:
    metadata = record.get("metadata") or {}
    text = metadata.get(columns.texts or choose_text(map(str, metadata), None, "") or "")
    own = metadata.get(columns.ids) if columns.ids else None
    return (
        str(record["id"] if own is None else own),
        record.get("values") or None,
        text if isinstance(text, str) else None,
    )
