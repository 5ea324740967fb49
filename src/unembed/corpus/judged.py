"""Collections with relevance judgements, in BEIR's format: which documents answer which query. Knows no vectors."""

import csv
import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from unembed.corpus.lines import read_lines
from unembed.errors import CorpusError

# Characters; encoders read no more of a text than this.
_LONGEST = 800
_QRELS = ("qrels.tsv", "qrels/test.tsv")
_TEXT_ONLY = "#text"


@dataclass(frozen=True)
class JudgedSet:
    """Documents, queries, and how relevant documents are to queries."""

    name: str
    documents: dict[str, str]
    """By id: title and text, cut to 800 characters."""
    queries: dict[str, str]
    relevant: dict[str, dict[str, float]]
    """By query: relevant documents and their gains, all above 0. Every query has one."""


def is_judged_folder(name: str) -> bool:
    """Whether a name is a folder with judgements; ``FOLDER#text`` reads documents without their titles."""
    return any((Path(name.removesuffix(_TEXT_ONLY)) / file).is_file() for file in _QRELS)


def read_judged(name: str) -> JudgedSet:
    """Read ``corpus.jsonl``, ``queries.jsonl`` (``.gz`` too) and ``qrels.tsv`` or ``qrels/test.tsv`` of a folder.

    Args:
        name: the folder; ``FOLDER#text`` leaves out the titles.

    Raises:
        CorpusError: a file is missing, or not in BEIR's format.
    """
    folder, titles = Path(name.removesuffix(_TEXT_ONLY)), not name.endswith(_TEXT_ONLY)
    documents = {}
    for record in _records(folder, "corpus"):
        title = str(record.get("title") or "") if titles else ""
        documents[str(record["_id"])] = f"{title} {record['text']}".strip()[:_LONGEST]
    asked = {str(record["_id"]): str(record["text"])[:_LONGEST] for record in _records(folder, "queries")}
    relevant = _judgements(folder, asked, documents)
    if not relevant:
        raise CorpusError(f"{folder} has no query with a relevant document.", "Check its qrels.tsv.")
    queries = {query: asked[query] for query in relevant}
    return JudgedSet(folder.name + ("" if titles else " without titles"), documents, queries, relevant)


def _records(folder: Path, stem: str) -> Iterator[dict[str, Any]]:
    path = next(
        (folder / f"{stem}{end}" for end in (".jsonl", ".jsonl.gz") if (folder / f"{stem}{end}").is_file()), None
    )
    if path is None:
        raise CorpusError(f"{folder} has no {stem}.jsonl.", "Give a folder in BEIR's format.")
    for number, line in enumerate(read_lines(path), start=1):
        if not line.strip():
            continue
        try:
            record = json.loads(line)
            if not {"_id", "text"} <= record.keys():
                raise ValueError("_id or text is missing")
        except (ValueError, AttributeError) as error:
            raise CorpusError(
                f"{path}, line {number} is not an object with _id and text.", "Give a folder in BEIR's format."
            ) from error
        yield record


def _judgements(folder: Path, queries: dict[str, str], documents: dict[str, str]) -> dict[str, dict[str, float]]:
    path = next((folder / name for name in _QRELS if (folder / name).is_file()), None)
    if path is None:
        raise CorpusError(f"{folder} has no qrels.tsv.", "Give a folder in BEIR's format.")
    relevant: dict[str, dict[str, float]] = {}
    for number, row in enumerate(csv.reader(read_lines(path), delimiter="\t"), start=1):
        if number == 1 or not row:
            continue
        try:
            query, document, score = row[0], row[1], float(row[2])
        except (IndexError, ValueError) as error:
            raise CorpusError(
                f"{path}, line {number} is not a query, a document and a score.", "Separate them with tabs."
            ) from error
        if score > 0 and query in queries and document in documents:
            relevant.setdefault(query, {})[document] = score
    return relevant
