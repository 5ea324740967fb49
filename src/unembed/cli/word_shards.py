"""One shard of ``unembed words``: from vectors to lines. Knows neither where vectors come from nor where lines go."""

import json
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Literal

import numpy as np

from unembed.auditing import WordReader
from unembed.auditing.calibration import Calibration, stored_for
from unembed.auditing.finding import typical_tokens
from unembed.checkpoint import CheckpointInfo
from unembed.connectors import VectorSource
from unembed.connectors.source import Id, rows_after
from unembed.distribution import Shard, Values
from unembed.inverter.elsewhere import load_inverter
from unembed.text import printable

Listing = Literal["json", "text", "none"]
"""How each vector is listed."""


def open_source(uri: str, batch_rows: int, limit: int | None, **columns: str | None) -> VectorSource:
    """Open the vectors, or the first of them."""
    from unembed.connectors import open_vectors

    source = open_vectors(uri, batch_rows=batch_rows, **columns)
    return source if limit is None else source.first(limit)


def read_shards(open_vectors: Callable[[], VectorSource], done: int, last_id: Id | None) -> Iterator[Shard]:
    """Yield batches of usable vectors behind the first ``done``; each with how many were skipped since the last one."""
    source = open_vectors()
    skipped: Counter[str] = Counter()
    number = 0
    for number, batch in enumerate(rows_after(source.usable(skipped), done, last_id, source.name), start=1):
        texts = None if batch.texts is None else list(batch.texts)
        found, skipped_before = {"ids": list(batch.ids), "vectors": batch.vectors, "texts": texts}, dict(skipped)
        skipped.clear()
        yield number - 1, found | {"first": done, "skipped": skipped_before}
        done += len(batch)
    if skipped:
        nothing = {"ids": [], "vectors": np.empty((0, 0), dtype=np.float32), "texts": None}
        yield number, nothing | {"first": done, "skipped": dict(skipped)}


@dataclass(frozen=True)
class WordWorker:
    """Names the words of a shard's vectors."""

    reader: WordReader
    listing: Listing
    calibration: Calibration | None
    """For how far a search can be trusted, where it was measured."""

    def __call__(self, values: Values) -> Values:
        """Return the lines of the vectors that are listed, and what was counted."""
        vectors, wanted = values["vectors"], self.reader.wanted
        facts = {"rows": len(vectors), "skipped": values["skipped"]}
        if not len(vectors):
            counts = np.zeros(len(self.reader.words), dtype=np.int64)
            return facts | {"shown": 0, "lines": "", "counts": counts, "holding": dict.fromkeys(wanted, 0)}
        named = self.reader.read(vectors)
        forms = [index for each in wanted.values() for index in each]
        kept = np.flatnonzero(named.holding(forms)) if wanted else np.arange(len(vectors))
        lines = ""
        if self.listing != "none":
            write = _json_line if self.listing == "json" else _text_line
            records = (_record(values, row, named.names_of(row)) for row in kept.tolist())
            lines = "".join(f"{write(record)}\n" for record in records)
        return facts | {
            "shown": len(kept),
            "lines": lines,
            "counts": named.counts(),
            "holding": {word: int(named.holding(each).sum()) for word, each in wanted.items()},
            "tokens": self.calibration and typical_tokens(self.calibration, vectors),
        }


def load_worker(
    model: str, device: str, info: CheckpointInfo, listing: Listing, choice: Mapping[str, Any]
) -> WordWorker:
    """Make a worker in another process, perhaps on another machine.

    Args:
        model: the inverter's name or folder.
        device: what it computes on.
        info: what it must be.
        listing: how each vector is listed.
        choice: of words, as :class:`WordReader` takes it.
    """
    inverter = load_inverter(model, device, info)
    return WordWorker(WordReader(inverter, **choice), listing, stored_for(info) if choice["find"] else None)


def _record(values: Values, row: int, words: Sequence[str]) -> dict[str, Any]:
    """Return one vector's words as JSON has them."""
    record: dict[str, Any] = {"row": values["first"] + row, "id": values["ids"][row], "words": words}
    text = values["texts"][row] if values["texts"] else None
    return record if text is None else record | {"stored_text": text}


_json_line = partial(json.dumps, ensure_ascii=False, default=str)


def _text_line(record: dict[str, Any]) -> str:
    """Return one vector's words as a line: its id, the words, and the stored text if there is one."""
    cells = [record["id"], " ".join(record["words"]), *([record["stored_text"]] if "stored_text" in record else [])]
    return "\t".join(printable(str(cell)) for cell in cells)
