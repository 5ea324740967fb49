"""Scale: what one and two workers of a Ray cluster on this machine do in a second, and whether memory stays flat.

The shards of ``unembed words``, ``embed`` and ``audit`` go through the cluster as these commands send them. A rate
counts what comes once every worker has given a result, so that starting and loading are left out. Each worker has one
thread. Memory is the largest sum over all processes of the cluster, over few shards and over three times as many.
"""

import os
import sys
import threading
import time
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from measure import Figure, Result, finish, make_parser
from texts import CANVAS_LENGTH, make_texts, real_lengths
from unembed.auditing.recover import load_worker as load_attacker
from unembed.cli.word_shards import load_worker as load_words
from unembed.distribution import MakeWorker, ReadShards, Shard, Values, Worker, ray_cluster
from unembed.encoders import known_tokenizer, load_encoder
from unembed.inverter import Inverter
from unembed.store.making import make_worker as make_embedder
from unembed.store.writer import describe_store

_RATIO, _GROWTH = 1.7, 1.1
_EVERY = 0.5  # seconds between two looks at the memory


class Job(NamedTuple):
    """Shards and who works on them."""

    rows: int
    """Vectors or texts in a shard."""
    shards: int
    read: ReadShards
    make_worker: MakeWorker


def read_vectors(count: int, rows: int, **facts: Any) -> Iterator[Shard]:
    """Yield shards of random unit vectors, the same in each: making them is not measured."""
    vectors = np.random.default_rng(0).normal(size=(rows, 384)).astype(np.float32)
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    for number in range(count):
        ids = list(range(number * rows, (number + 1) * rows))
        yield number, {"ids": ids, "vectors": vectors, "texts": None, "first": ids[0], "skipped": {}} | facts


def read_lines(lines: list[str], count: int, rows: int) -> Iterator[Shard]:
    """Yield shards of texts."""
    for number in range(count):
        yield number, {"lines": lines[number * rows : (number + 1) * rows]}


def words_job(shards: int, rows: int) -> Job:
    """Return what ``unembed words --output`` does."""
    choice: dict[str, Any] = {"top": 12, "vocabulary": None, "find": []}
    worker = partial(load_words, "default", "cpu", Inverter.default().info, "json", choice)
    return Job(rows, shards, partial(read_vectors, shards, rows), worker)


def embed_job(shards: int, rows: int) -> Job:
    """Return what ``unembed embed`` does, on texts as long as those of the real corpus."""
    encoder = load_encoder(device="cpu")
    tokenizer = known_tokenizer(encoder)
    manifest = describe_store(iter(()), encoder, tokenizer, CANVAS_LENGTH, rows)
    worker = partial(make_embedder, partial(load_encoder, device="cpu"), tokenizer, manifest, 32)
    lines = list(make_texts(real_lengths(shards * rows)))
    return Job(rows, shards, partial(read_lines, lines, shards, rows), worker)


def audit_job(shards: int, rows: int) -> Job:
    """Return what the blind part of ``unembed audit`` does."""
    inverter = Inverter.default()
    known = inverter.load_encoder().description
    worker = partial(load_attacker, "default", "cpu", "torch", inverter.info, None, known)
    return Job(rows, shards, partial(read_vectors, shards, rows, mode="blind"), worker)


def transfer_job(shards: int, rows: int) -> Job:
    """Return shards that nobody works on: how many one reader and the command can pass on."""
    return Job(rows, shards, partial(read_vectors, shards, rows), partial(_give, _count))


def measure(job: Job, workers: int) -> tuple[float, float]:
    """Return rows per second from when all workers work, and the largest memory in bytes."""
    times, known = [], set()
    begun = 0.0
    peak = Peak()
    with peak, ray_cluster("auto", workers=workers) as map_shards:
        for _, result in map_shards(job.read, partial(_sign, job.make_worker)):
            now = time.perf_counter()
            known.add(result["worker"])
            if begun:
                times.append(now)
            elif len(known) == workers:
                begun = now
    rate = job.rows * len(times) / (times[-1] - begun)
    print(
        f"  {workers} workers: {rate:,.1f} / s over {len(times)} shards, {peak.bytes / 1e6:,.0f} MB",
        file=sys.stderr,
        flush=True,
    )
    return rate, peak.bytes


def _sign(make_worker: MakeWorker) -> Worker:
    """Make a worker that says which process it is."""
    work = make_worker()
    return lambda values: work(values) | {"worker": os.getpid()}


def _count(values: Values) -> Values:
    return {"rows": len(values["vectors"])}


def _give(worker: Worker) -> Worker:
    return worker


class Peak:
    """Watches the memory of this process and of all that it has started."""

    def __init__(self) -> None:
        self.bytes = 0.0
        self._done = threading.Event()
        self._thread = threading.Thread(target=self._watch, daemon=True)

    def __enter__(self) -> "Peak":
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._done.set()
        self._thread.join()

    def _watch(self) -> None:
        import psutil

        own = psutil.Process(os.getpid())
        while not self._done.wait(_EVERY):
            private, shared = 0, [0]
            for process in [own, *own.children(recursive=True)]:
                try:
                    memory = process.memory_info()
                except psutil.Error:  # it has just ended
                    continue
                private += memory.rss - memory.shared
                shared.append(memory.shared)  # mostly Ray's object store, which all of them share
            self.bytes = max(self.bytes, float(private + max(shared)))


def main() -> None:
    """Measure each job with one worker and with two, and the memory of words over few shards and over more."""
    parser = make_parser(__doc__, repetitions=1)
    parser.add_argument("--jobs", nargs="+", choices=[*_JOBS, "memory"], default=[*_JOBS, "memory"])
    options = parser.parse_args()
    os.environ["OMP_NUM_THREADS"] = "1"
    rows, figures, ratios, notes = [], [], [], []
    with ray_cluster("auto"):  # one for all that follows
        for name in [name for name in _JOBS if name in options.jobs]:
            make, small, large = _JOBS[name]
            job = make(*(small if options.quick else large))
            (one, _), (two, _) = (measure(job, workers) for workers in (1, 2))
            ratios.append(two / one)
            rows.append([name, f"{job.shards} of {job.rows:,}", f"{one:,.1f}", f"{two:,.1f}", f"{two / one:.2f}"])
            print(*rows[-1], file=sys.stderr, flush=True)
        if ratios:
            figures.append(Figure("Two workers against one, where they gain least", min(ratios), _RATIO))
        if "memory" in options.jobs:
            few, size = (12, 64) if options.quick else (48, 4096)  # enough to fill what the reader may be ahead by
            # What Ray keeps of a first run is there before the two that are compared.
            _, (_, less), (_, more) = (measure(words_job(shards, size), 2) for shards in (few, few, 3 * few))
            passed, _ = measure(transfer_job(few, size), 1)
            figures.append(
                Figure("Memory of words over three times as many shards", more / less, _GROWTH, at_least=False)
            )
            notes = [
                f"All processes of words with two workers: {less / 1e6:,.0f} MB for {few} shards of {size:,} vectors, "
                f"{more / 1e6:,.0f} MB for {3 * few}.",
                f"Reader and command alone pass on {passed:,.0f} vectors of 384 numbers a second.",
            ]
    finish(
        Result(
            title="Scale",
            compared="One worker against two, of a Ray cluster on one machine.",
            columns=["job", "shards", "one worker, rows/s", "two workers, rows/s", "ratio"],
            rows=rows,
            figures=figures,
            repetitions=options.repetitions,
            sizes={"cores": os.cpu_count(), "threads of a worker": 1},
            notes=notes,
        ),
        options,
    )


_JOBS: dict[str, tuple[Callable[[int, int], Job], tuple[int, int], tuple[int, int]]] = {
    "words": (words_job, (12, 64), (12, 4096)),
    "embed": (embed_job, (12, 16), (8, 512)),
    "audit": (audit_job, (12, 2), (6, 32)),
}
"""Shards and their rows, in a smoke run and otherwise."""


if __name__ == "__main__":
    main()
