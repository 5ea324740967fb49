"""Draws vectors from a vector database in one pass, in proportion to its groups. Knows no inverters."""

import heapq
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from hashlib import blake2b

import numpy as np

from unembed.connectors import VectorSource
from unembed.connectors.source import Id
from unembed.errors import VectorError

# Characters; texts double in length from group to group.
_LENGTHS = (40, 80, 160, 320)


@dataclass(frozen=True)
class Sample:
    """Some rows of a vector database, in random order, and what there was to choose from."""

    ids: list[Id]
    vectors: np.ndarray
    """(n, d) float32."""
    texts: list[str] | None
    """Of all of them; None where the database lacks the text of any."""
    population: int
    """Usable vectors in the database."""
    groups: dict[str, int]
    """What it was stratified by: how many vectors of the database each group has."""
    skipped: Counter[str]
    """Vectors that could not be used, by what is wrong with them."""
    norms: tuple[float, float, float]
    """The least, the mean and the greatest norm in the database."""

    def __len__(self) -> int:
        return len(self.ids)


@dataclass(order=True)
class _Drawn:
    order: int
    """Negative, because a heap removes its smallest entry, and the greatest number should go first."""
    name: Id = field(compare=False)
    vector: np.ndarray = field(compare=False)
    text: str | None = field(compare=False)


def draw(
    source: VectorSource, size: int | None, *, seed: int = 0, on_rows: Callable[[int], None] = lambda count: None
) -> Sample:
    """Read a vector database once and keep ``size`` of its rows, or all of them.

    Each row gets a random number that depends on the seed and its id alone. Rows are grouped by the length of their
    text, or by their norm where there are no texts. Each group keeps its rows with the smallest numbers, as many as its
    share in the database. So the same seed draws the same rows, whatever their order. ``on_rows`` is called with how
    many rows were read.
    """
    kept: dict[str, list[_Drawn]] = {}
    groups: Counter[str] = Counter()
    skipped: Counter[str] = Counter()
    norms: list[tuple[float, float, float]] = []
    for batch in source.usable(skipped):
        lengths = np.linalg.norm(batch.vectors, axis=1)
        norms.append((float(lengths.min()), float(lengths.sum()), float(lengths.max())))
        texts = batch.texts or [None] * len(batch)
        for name, vector, text, norm in zip(batch.ids, batch.vectors, texts, lengths, strict=True):
            group = _by_norm(float(norm)) if text is None else _by_length(text)
            groups[group] += 1
            drawn, order = kept.setdefault(group, []), -_number(name, seed)
            full = size is not None and len(drawn) >= size
            if full and order <= drawn[0].order:
                continue
            row = _Drawn(order, name, vector.copy(), text)  # a view would keep its whole batch in memory
            if full:
                heapq.heapreplace(drawn, row)
            else:
                heapq.heappush(drawn, row)
        on_rows(len(batch))
    population = groups.total()
    if not population:
        unusable = "; ".join(f"{count:,} are {what}" for what, count in skipped.items() if count)
        raise VectorError(
            f"{source.name} holds no vectors{f' that can be read: {unusable}' if unusable else ''}.",
            "Check the address, and the collection or table behind #.",
        )
    chosen = sorted(_in_proportion(kept, groups, population if size is None else size), reverse=True)
    texts = [row.text for row in chosen]
    least, sums, most = zip(*norms, strict=True)
    return Sample(
        ids=[row.name for row in chosen],
        vectors=np.stack([row.vector for row in chosen]),
        texts=None if any(not text for text in texts) else [text for text in texts if text],
        population=population,
        groups={group: groups[group] for group in sorted(groups, key=_first_number)},
        skipped=skipped,
        norms=(min(least), sum(sums) / population, max(most)),
    )


def _in_proportion(kept: dict[str, list[_Drawn]], groups: Counter[str], size: int) -> Iterator[_Drawn]:
    """Yield each group's share of the sample, rounded so that the shares add up."""
    total = groups.total()
    size = min(size, total)
    exact = {group: size * count / total for group, count in groups.items()}
    shares = {group: int(share) for group, share in exact.items()}
    by_remainder = sorted(exact, key=lambda group: (shares[group] - exact[group], group))
    for group in by_remainder[: size - sum(shares.values())]:
        shares[group] += 1
    for group, rows in kept.items():
        yield from heapq.nlargest(shares[group], rows)


def _number(name: Id, seed: int) -> int:
    return int.from_bytes(blake2b(f"{seed}:{name}".encode(errors="replace"), digest_size=8).digest())


def _by_length(text: str) -> str:
    least = 1
    for most in _LENGTHS:
        if len(text) <= most:
            return f"{least} to {most} characters"
        least = most + 1
    return f"over {_LENGTHS[-1]} characters"


def _first_number(group: str) -> float:
    return next(float(word) for word in group.split() if word[0].isdigit())


def _by_norm(norm: float) -> str:
    power = round(np.log2(norm))
    return f"norm about {2.0**power:g}"
