"""The worker threads. Jobs that fit together are computed together. Knows no HTTP.

A job has two stages. First its vector is made, which also gives the number of tokens of its text: a pass can compute
canvases of one length together. Then it is decoded together with all that wait for the same model, options and length;
slots are filled for one vector at a time.
Texts do not depend on how vectors are batched, so only the time changes.

Work that takes long is interrupted between two passes: new jobs and interrupted work take turns.
"""

import logging
import threading
import time
import traceback
from collections import deque
from collections.abc import Iterable, Sequence

import torch

from unembed.errors import UnembedError
from unembed.server.filling import SlotFilling
from unembed.server.jobs import Job
from unembed.server.line import Line
from unembed.server.metrics import Metrics
from unembed.server.pace import Pace
from unembed.server.problems import Refusal, busy
from unembed.server.schemas import Queued, QueueState
from unembed.server.settings import Settings
from unembed.server.work import Decoding, Preparation, Work

logger = logging.getLogger(__name__)

# New batches that may begin before interrupted work goes on: one makes vectors, the other decodes them.
_NEW_IN_A_ROW = 2


class Batcher:
    """Works on jobs in threads of its own."""

    def __init__(self, settings: Settings, metrics: Metrics) -> None:
        self._settings = settings
        self._metrics = metrics
        self._line = Line(settings)
        self._pace = Pace()
        self._active: list[Work] = []
        """Work that has begun."""
        self._interrupted: deque[Work] = deque()
        """The part of it that waits to go on."""
        self._new_in_a_row = 0
        self._changed = threading.Condition()
        self._stopping = False
        self._threads = [
            threading.Thread(target=self._run, name=f"unembed-worker-{number}", daemon=True)
            for number in range(settings.workers)
        ]
        metrics.waiting.set_function(lambda: len(self._line))
        metrics.running.set_function(lambda: self._running)

    def start(self) -> None:
        """Begin to work."""
        torch.set_num_threads(self._settings.threads)
        for thread in self._threads:
            thread.start()

    def turn_away(self) -> None:
        """Refuse all jobs, also those in work. The results of passes under way are dropped."""
        with self._changed:
            self._stopping = True
            refused = [*self._line.clear(), *(job for work in self._active for job in work.jobs)]
            self._interrupted.clear()
            self._changed.notify_all()
        _fail(refused, _shutting_down())

    def stop(self) -> None:
        """Refuse all jobs, and return when the passes under way have ended."""
        self.turn_away()
        for thread in self._threads:
            thread.join()

    def submit(self, jobs: Sequence[Job]) -> None:
        """Let the jobs of one request wait for their turn; all or none of them."""
        with self._changed:
            capacity = self._settings.limits.queue
            self._check()
            if len(self._line) + len(jobs) > capacity:
                raise busy(f"The queue is full: {len(self._line)} of {capacity} places are taken.")
            self._line.join(jobs)
            self._changed.notify_all()

    def cancel(self, jobs: Iterable[Job]) -> None:
        """Forget jobs whose clients have left. A batch ends early when all its jobs are forgotten."""
        with self._changed:
            jobs = list(jobs)
            for job in jobs:
                job.cancelled = True
            self._line.leave(jobs)

    def stop_search(self, job_id: str) -> bool:
        """Let a search that has begun end with its best text; return whether there was one to stop."""
        with self._changed:
            jobs = [job for work in self._active if isinstance(work, Decoding) for job in work.jobs]
            for job in jobs:
                if job.id == job_id and job.guided and not (job.stopped or job.cancelled):
                    job.stopped = True
                    return True
        return False

    def queued(self, job: Job) -> Queued | None:
        """Return the position of a waiting job and how long it will take until its turn; None when it does not wait."""
        with self._changed:
            before = self._line.before(job)
            if before is None:
                return None
            decodings = [work for work in self._active if isinstance(work, Decoding | SlotFilling)]
            left = [_left(self._pace.expect(other), 0.0) for other in before]
            for decoding in decodings:
                if decoding.jobs[0].guided == job.guided:
                    done = decoding.seconds / len(decoding.jobs)
                    left += [_left(self._pace.expect(other), done) for other in decoding.jobs]
        known = [seconds for seconds in left if seconds is not None]
        estimate = sum(known) / self._settings.workers if len(known) == len(left) else None
        return Queued(position=len(before) + 1, seconds=None if estimate is None else round(estimate))

    def state(self) -> QueueState:
        """Return how busy it is."""
        with self._changed:
            return QueueState(
                running=self._running,
                waiting=len(self._line),
                capacity=self._settings.limits.queue,
                workers=self._settings.workers,
            )

    @property
    def _running(self) -> int:
        return sum(len(work.jobs) for work in self._active)

    def _run(self) -> None:
        torch.set_num_threads(self._settings.threads)
        while work := self._take():
            try:
                finished = self._advance(work)
            except UnembedError as error:
                _fail(work.jobs, error)
                finished = True
            except Exception as error:  # a bug of ours; its message may quote the text, so it is not logged
                logger.error("A batch failed with %s at %s.", type(error).__name__, _origin(error))
                _fail(work.jobs, Refusal(500, "The server failed.", "Please report what you asked for."))
                finished = True
            if finished:
                work.close()
            with self._changed:
                if finished:
                    self._active.remove(work)
                elif not self._stopping:
                    self._interrupted.append(work)
                if finished and isinstance(work, Preparation) and not self._stopping:
                    self._line.rejoin(work.to_decode)
                self._changed.notify_all()

    def _advance(self, work: Work) -> bool:
        """Work until the batch is finished or others should have their turn; return whether it is finished."""
        end = time.perf_counter() + self._settings.turn_seconds
        while work.advance():
            with self._changed:
                self._check()
                if time.perf_counter() >= end and (self._interrupted or self._next_batch()):
                    return False
        return True

    def _take(self) -> Work | None:
        """Wait for something to do; None is the end."""
        with self._changed:
            while not self._stopping:
                batch = self._next_batch()
                pause = batch[0].arrived + self._settings.coalesce_seconds - time.perf_counter() if batch else None
                ripe = bool(batch) and ((pause or 0.0) <= 0.0 or len(batch) == self._line.largest_batch(batch[0]))
                if self._interrupted and (not ripe or self._new_in_a_row >= _NEW_IN_A_ROW):
                    self._new_in_a_row = 0
                    return self._interrupted.popleft()
                if ripe:
                    self._new_in_a_row += 1
                    return self._begin(batch)
                self._changed.wait(pause)
            return None

    def _begin(self, batch: list[Job]) -> Work:
        self._line.take(batch)
        work: Work
        if batch[0].prepared is None:
            work = Preparation(batch)
        elif batch[0].slots is not None:
            work = SlotFilling(batch[0], self._settings, self._metrics, self._pace)
        else:
            work = Decoding(batch, self._settings, self._metrics, self._pace)
        self._active.append(work)
        return work

    def _next_batch(self) -> list[Job]:
        if self._running >= self._settings.limits.queue:  # interrupted work takes memory
            return []
        return self._line.next_batch([work.jobs for work in self._active if not isinstance(work, Preparation)])

    def _check(self) -> None:
        if self._stopping:
            raise _shutting_down()


def _left(expected: float | None, done: float) -> float | None:
    """Return the seconds of computing that are left of those expected."""
    return None if expected is None else max(0.0, expected - done)


def _shutting_down() -> Refusal:
    return busy("The server is shutting down.")


def _fail(jobs: Iterable[Job], error: UnembedError) -> None:
    for job in jobs:
        job.tell(error)


def _origin(error: Exception) -> str:
    """Return the file and line that raised an error."""
    last = traceback.extract_tb(error.__traceback__)[-1]
    return f"{last.filename}:{last.lineno}"
