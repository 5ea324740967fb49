"""The queue: which jobs wait, in which order, and which of them go next. Knows no threads and does no work.

Requests take turns. The first vector of a request lines up at the turn in which the request arrives, its second vector
one turn later, and so on. A single vector therefore goes ahead of most of a large batch that came before it, and a
batch is never overtaken for longer than it has vectors.
"""

from collections import Counter
from collections.abc import Iterable, Sequence
from itertools import count, islice

from unembed.server.jobs import Job
from unembed.server.settings import Settings

# Vectors that are searched together. A round of guided search takes about half a second per vector, and other work has
# to wait for the end of a round.
_SEARCHED_TOGETHER = 4
# Batches of vectors that may be made before something is decoded. Without a limit, a stream of texts that are only
# embedded would keep everything else waiting.
_PREPARED_IN_A_ROW = 4


class Line:
    """Jobs that wait for their turn. Not thread-safe: the batcher holds its lock."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._jobs: list[Job] = []
        self._requests = count()
        self._turn = 0
        self._prepared_in_a_row = 0

    def __len__(self) -> int:
        return len(self._jobs)

    def join(self, jobs: Sequence[Job]) -> None:
        """Let the jobs of a new request wait."""
        request = next(self._requests)
        for index, job in enumerate(jobs):
            job.request, job.turn = request, self._turn + index
        self.rejoin(jobs)

    def rejoin(self, jobs: Iterable[Job]) -> None:
        """Put jobs back into the queue at their earlier position."""
        self._jobs = sorted([*self._jobs, *jobs], key=lambda job: (job.turn, job.arrived))

    def leave(self, jobs: Iterable[Job]) -> None:
        """Take jobs out of the queue."""
        leaving = set(jobs)
        self._jobs = [job for job in self._jobs if job not in leaving]

    def clear(self) -> list[Job]:
        """Take all jobs out of the queue."""
        jobs, self._jobs = self._jobs, []
        return jobs

    def next_batch(self, decoded: Sequence[Sequence[Job]]) -> list[Job]:
        """Return what should begin next: mostly vectors to be made, because that decides which jobs fit together.

        Args:
            decoded: the batches that are being decoded. A request does not begin more of them than there are workers,
                and does not take all the room for searches.
        """
        unprepared = [job for job in self._jobs if job.prepared is None]
        if unprepared and self._prepared_in_a_row < _PREPARED_IN_A_ROW:
            return self._to_prepare(unprepared)
        return self._to_decode(decoded) or self._to_prepare(unprepared)

    def _to_prepare(self, unprepared: Sequence[Job]) -> list[Job]:
        same_model = (job for job in unprepared if job.batch_key == unprepared[0].batch_key)
        return list(islice(same_model, self._settings.largest_batch))

    def _to_decode(self, decoded: Sequence[Sequence[Job]]) -> list[Job]:
        batches = Counter(request for jobs in decoded for request in {job.request for job in jobs})
        searches = Counter(job.request for jobs in decoded for job in jobs if job.guided)
        batch: list[Job] = []
        for job in self._jobs:
            if job.prepared is None:
                continue
            if batch and job.batch_key != batch[0].batch_key:
                continue
            if not batch and batches[job.request] >= self._settings.workers:
                continue
            if job.guided:
                if searches.total() >= self._settings.searches or searches[job.request] >= _SEARCHED_TOGETHER:
                    continue
                searches[job.request] += 1
            batch.append(job)
            if len(batch) == self.largest_batch(batch[0]):
                break
        return batch

    def largest_batch(self, first: Job) -> int:
        """Return how many jobs may be worked on together with this one."""
        together = _SEARCHED_TOGETHER if first.guided and first.prepared else self._settings.largest_batch
        return min(together, self._settings.largest_batch)

    def take(self, batch: Sequence[Job]) -> None:
        """Take a batch out of the queue to work on it: the next turn begins."""
        self.leave(batch)
        self._turn += 1
        self._prepared_in_a_row = self._prepared_in_a_row + 1 if batch[0].prepared is None else 0

    def before(self, job: Job) -> list[Job] | None:
        """Return the jobs that a waiting job has to wait for; None when it does not wait.

        Searches and other jobs do not wait for one another: they take turns.
        """
        same = [other for other in self._jobs if other.guided == job.guided]
        return same[: same.index(job)] if job in same else None
