"""The queue and the threads that empty it: what waits and fits together is worked on together. Knows no HTTP.

A job goes through twice. First its vector is made, which also tells how many tokens its text will have; canvases of one
length are what a pass can compute together. Then it is decoded beside all that wait for the same model, options and
length. Texts do not depend on how vectors are batched, so nothing but time changes.
"""

import logging
import threading
import time
import traceback
from collections.abc import Iterable, Sequence
from operator import attrgetter

import torch

from unembed.errors import UnembedError
from unembed.server.jobs import Job
from unembed.server.metrics import Metrics
from unembed.server.problems import Refusal, busy
from unembed.server.schemas import QueueState
from unembed.server.settings import Settings
from unembed.server.work import decode, prepare

logger = logging.getLogger(__name__)


class Batcher:
    """Works on jobs in threads of its own, in the order of their arrival, with whatever else fits into the batch."""

    def __init__(self, settings: Settings, metrics: Metrics) -> None:
        self._settings = settings
        self._metrics = metrics
        self._waiting: list[Job] = []
        self._running = 0
        self._searches = 0
        self._changed = threading.Condition()
        self._stopping = False
        self._threads = [
            threading.Thread(target=self._work, name=f"unembed-worker-{number}", daemon=True)
            for number in range(settings.workers)
        ]
        metrics.waiting.set_function(lambda: len(self._waiting))
        metrics.running.set_function(lambda: self._running)

    def start(self) -> None:
        """Begin to work."""
        torch.set_num_threads(self._settings.threads)
        for thread in self._threads:
            thread.start()

    def stop(self) -> None:
        """Turn away what waits, and end after the passes that are under way."""
        with self._changed:
            self._stopping = True
            waiting, self._waiting = self._waiting, []
            self._changed.notify_all()
        _fail(waiting, busy("The server is shutting down."))
        for thread in self._threads:
            thread.join()

    def submit(self, jobs: Sequence[Job]) -> None:
        """Let jobs wait for their turn; all or none of them."""
        with self._changed:
            capacity = self._settings.limits.queue
            self._check()
            if len(self._waiting) + len(jobs) > capacity:
                raise busy(f"The queue is full: {len(self._waiting)} of {capacity} places are taken.")
            self._waiting += jobs
            self._changed.notify_all()

    def cancel(self, jobs: Iterable[Job]) -> None:
        """Forget jobs: nobody waits for them any more. A batch ends early when all its jobs are forgotten."""
        with self._changed:
            for job in jobs:
                job.cancelled = True
            self._waiting = [job for job in self._waiting if not job.cancelled]

    def position(self, job: Job) -> int | None:
        """Return how many wait up to and with this job; None when it does not wait."""
        with self._changed:
            return self._waiting.index(job) + 1 if job in self._waiting else None

    def state(self) -> QueueState:
        """Return how busy it is."""
        with self._changed:
            return QueueState(
                running=self._running,
                waiting=len(self._waiting),
                capacity=self._settings.limits.queue,
                workers=self._settings.workers,
            )

    def _work(self) -> None:
        torch.set_num_threads(self._settings.threads)
        while batch := self._take():
            searching = batch[0].searching
            try:
                if batch[0].prepared is None:
                    self._wait_again(prepare(batch))
                else:
                    decode(batch, self._settings, self._metrics, check=self._check)
            except UnembedError as error:
                _fail(batch, error)
            except Exception as error:  # a bug of ours; its message may quote the text, so it is not logged
                logger.error("A batch failed with %s at %s.", type(error).__name__, _origin(error))
                _fail(batch, Refusal(500, "The server failed.", "Please report what you asked for."))
            finally:
                with self._changed:
                    self._running -= len(batch)
                    self._searches -= searching
                    self._changed.notify_all()

    def _wait_again(self, jobs: Iterable[Job]) -> None:
        """Let jobs whose vectors were made wait for their passes, in the order of their arrival."""
        with self._changed:
            self._check()
            going_on = [job for job in jobs if not job.cancelled]
            self._waiting = sorted([*self._waiting, *going_on], key=attrgetter("arrived"))

    def _check(self) -> None:
        if self._stopping:
            raise busy("The server is shutting down.")

    def _take(self) -> list[Job]:
        """Wait for the next batch; an empty one is the end."""
        with self._changed:
            while not self._stopping:
                chosen = self._next()
                pause = chosen[0].arrived + self._settings.coalesce_seconds - time.perf_counter() if chosen else None
                if chosen and ((pause or 0.0) <= 0.0 or len(chosen) == self._settings.largest_batch):
                    taken = set(chosen)
                    self._waiting = [job for job in self._waiting if job not in taken]
                    self._running += len(chosen)
                    self._searches += chosen[0].searching
                    return chosen
                self._changed.wait(pause)
            return []

    def _next(self) -> list[Job]:
        """Return what should be worked on next: vectors to be made first, for they tell what fits together."""
        fresh = [job for job in self._waiting if job.prepared is None]
        # Searches take long: one worker stays free of them, where there is more than one.
        full = self._settings.workers > 1 and self._searches >= self._settings.workers - 1
        ready = [job for job in self._waiting if job.prepared and not (full and job.guided)]
        candidates = fresh or ready
        return [job for job in candidates if job.together == candidates[0].together][: self._settings.largest_batch]


def _fail(jobs: Iterable[Job], error: UnembedError) -> None:
    for job in jobs:
        job.tell(error)


def _origin(error: Exception) -> str:
    """Return the file and line that raised an error."""
    last = traceback.extract_tb(error.__traceback__)[-1]
    return f"{last.filename}:{last.lineno}"
