"""What a shard is, and how shards are worked on in this process. Knows nothing of Ray.

A reader yields numbered shards, a worker turns the values of one into its result, and results come back with the number
of their shard. A result depends on its shard alone, so it is the same wherever, whenever and however often it is made.
"""

from collections.abc import Callable, Iterable, Iterator
from typing import Any

Values = dict[str, Any]
"""Arrays, and whatever JSON can hold, by name."""
Shard = tuple[int, Values]
"""A number and its values: a part of the input, or its result."""
ReadShards = Callable[[], Iterator[Shard]]
"""Opens the input and yields the shards that are to be worked on, with growing numbers."""
Worker = Callable[[Values], Values]
"""Turns the values of a shard into its result."""
MakeWorker = Callable[[], Worker]
"""Loads what a worker needs. Called once in each process that works."""
MapShards = Callable[[ReadShards, MakeWorker], Iterator[Shard]]
"""Yields the result of every shard, in any order, each as soon as it is known."""


def map_here(read: ReadShards, make_worker: MakeWorker) -> Iterator[Shard]:
    """Work on the shards in this process, one after the other."""
    work = make_worker()
    for number, values in read():
        yield number, work(values)


def in_order(results: Iterable[Shard], first: int = 0) -> Iterator[Shard]:
    """Yield results by their numbers, which go up from ``first`` without a gap; what comes too early waits."""
    early: dict[int, Values] = {}
    for number, values in results:
        early[number] = values
        while first in early:
            yield first, early.pop(first)
            first += 1
