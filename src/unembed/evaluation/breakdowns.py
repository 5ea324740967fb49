"""Token accuracy by position, by how frequent the token is, and by text length."""

from collections.abc import Sequence

import numpy as np

from unembed.evaluation.bench import describe, mode_of
from unembed.evaluation.bootstrap import Bootstrap
from unembed.evaluation.setup import Setup
from unembed.evaluation.table import Row, RowMode, Table
from unembed.measures import token_hits

Hits = Sequence[Sequence[bool]]
"""For each text, whether each of the reference's positions was recovered."""
_RANKS = (10, 100, 1_000, 10_000)
_LENGTH_GROUPS = 8


def breakdown_tables(setup: Setup, counts: np.ndarray | None) -> list[Table]:
    """Break down the first strategy; ``counts`` says how often each token is in the store, where there is one."""
    first, mode, references = setup.ways[0], mode_of(setup.ways[0]), setup.references
    recovered = setup.bench.outcome(first).recovered.ids
    ids = references.ids[: len(recovered)]
    hits = [token_hits(*pair) for pair in zip(recovered, ids, strict=True)]
    where = "the store" if counts is not None else "the evaluated texts (no `store` was given)"
    if counts is None:
        size = setup.bench.subject.inverter.info.vocabulary.size
        counts = np.bincount(np.concatenate([np.array(text) for text in references.ids]), minlength=size)
    position = by_position(hits, setup.bootstrap, mode)
    frequency = by_frequency(hits, ids, counts, setup.bootstrap, mode)
    length = by_length(hits, references.canvas_length, setup.bootstrap, mode)
    decoded = f"Decoded with {describe(first)}."
    ranked = f"{decoded} Ranks by the counts in {where}."
    return [
        Table("by_position", "Accuracy by position", decoded, position, "position of the token"),
        Table("by_frequency", "Accuracy by token frequency", ranked, frequency, "rank of the token"),
        Table("by_length", "Accuracy by text length", decoded, length, "tokens in the text"),
    ]


def by_position(hits: Hits, bootstrap: Bootstrap, mode: RowMode) -> list[Row]:
    """Measure each position over the texts that have it; positions count from 1."""
    rows = []
    for position in range(max(map(len, hits))):
        values = np.array([float(text[position]) for text in hits if position < len(text)])
        rows.append(Row(str(position + 1), mode, len(values), {"token_accuracy": bootstrap.mean(values)}))
    return rows


def by_frequency(
    hits: Hits, references: Sequence[Sequence[int]], counts: np.ndarray, bootstrap: Bootstrap, mode: RowMode
) -> list[Row]:
    """Measure tokens in groups of their rank in ``counts``, the most frequent first."""
    ranks = np.empty(len(counts), dtype=np.int64)
    ranks[np.argsort(-counts, kind="stable")] = np.arange(1, len(counts) + 1)
    group = np.where(counts > 0, np.searchsorted(_RANKS, ranks), len(_RANKS) + 1)
    names = [f"{low + 1:,} to {high:,}" for low, high in zip((0, *_RANKS), _RANKS, strict=False)]
    rows = []
    for number, name in enumerate([*names, f"beyond {_RANKS[-1]:,}", "never seen"]):
        inside = [group[list(ids)] == number for ids in references]
        totals = np.array([part.sum() for part in inside], dtype=np.float64)
        right = np.array([part[list(text)].sum() for part, text in zip(inside, hits, strict=True)], dtype=np.float64)
        having = totals > 0
        if having.any():
            figures = {"token_accuracy": bootstrap.ratio(right[having], totals[having])}
            rows.append(Row(name, mode, int(having.sum()), figures, {"tokens": int(totals.sum())}))
    return rows


def by_length(hits: Hits, canvas_length: int, bootstrap: Bootstrap, mode: RowMode) -> list[Row]:
    """Measure texts in groups of their number of tokens."""
    width = max(1, -(-canvas_length // _LENGTH_GROUPS))
    rows = []
    for start in range(1, canvas_length + 1, width):
        end = min(start + width - 1, canvas_length)
        values = np.array([np.mean(text) for text in hits if start <= len(text) <= end])
        if len(values):
            name = str(start) if start == end else f"{start} to {end}"
            rows.append(Row(name, mode, len(values), {"token_accuracy": bootstrap.mean(values)}))
    return rows
