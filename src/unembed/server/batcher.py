"""The queue and the threads that empty it: what waits and fits together is worked on together. Knows no HTTP.

A job goes through twice. First its vector is made (a text is embedded, a defence applied), which also tells how many
tokens its text will have; canvases of one length are what a pass can compute together. Then it is decoded beside all
that wait for the same model, options and length. Texts do not depend on how vectors are batched, so nothing but time
changes.
"""

import logging
import threading
import time
from collections.abc import Iterable, Sequence
from contextlib import closing

import numpy as np
import torch

from unembed.decoding import Step
from unembed.defences import apply
from unembed.errors import UnembedError
from unembed.inverter import Inversion, check_vectors
from unembed.server.jobs import Job, Prepared, Started
from unembed.server.metrics import Metrics
from unembed.server.problems import Refusal, busy
from unembed.server.schemas import QueueState, RecoveredToken, Result
from unembed.server.settings import Settings
from unembed.server.views import cosine, describe_reference, describe_vector, measure, show_step

logger = logging.getLogger(__name__)


class Batcher:
    """Works on jobs in threads of its own, in the order of their arrival, with whatever else fits into the batch."""

    def __init__(self, settings: Settings, metrics: Metrics) -> None:
        self._settings = settings
        self._metrics = metrics
        self._waiting: list[Job] = []
        self._running = 0
        self._guided_batches = 0
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
        for job in waiting:
            job.tell(busy("The server is shutting down."))
        for thread in self._threads:
            thread.join()

    def submit(self, jobs: Sequence[Job]) -> None:
        """Let jobs wait for their turn; all or none of them."""
        with self._changed:
            capacity = self._settings.limits.queue
            if self._stopping:
                raise busy("The server is shutting down.")
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
            guided = batch[0].prepared is not None and batch[0].guided
            try:
                if batch[0].prepared is None:
                    self._prepare(batch)
                else:
                    self._decode(batch)
            except UnembedError as error:
                _fail(batch, error)
            except Exception as error:  # a bug of ours; its message may quote the text, so it is not logged
                logger.error("A batch failed with %s at %s.", type(error).__name__, _origin(error))
                _fail(batch, Refusal(500, "The server failed.", "Please report what you asked for."))
            finally:
                with self._changed:
                    self._running -= len(batch)
                    self._guided_batches -= guided
                    self._changed.notify_all()

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
                    self._guided_batches += chosen[0].prepared is not None and chosen[0].guided
                    return chosen
                self._changed.wait(pause)
            return []

    def _next(self) -> list[Job]:
        """Return what should be worked on next: vectors to be made first, for they tell what fits together."""
        fresh = [job for job in self._waiting if job.prepared is None]
        # Searches take long: one worker stays free of them, where there is more than one.
        full = self._settings.workers > 1 and self._guided_batches >= self._settings.workers - 1
        ready = [job for job in self._waiting if job.prepared and not (full and job.guided)]
        candidates = fresh or ready
        return [job for job in candidates if job.together == candidates[0].together][: self._settings.largest_batch]

    def _prepare(self, jobs: list[Job]) -> None:
        """Make the vectors; then the jobs wait again, for their passes."""
        model = jobs[0].model
        texts = {job: job.trip.embedded for job in jobs if job.vector is None and job.trip is not None}
        if texts:
            vectors = model.needed_encoder("Embedding a text").encode(list(texts.values()))
            for job, vector in zip(texts, vectors, strict=True):
                job.vector = vector
        defended: dict[Job, np.ndarray] = {}
        for job in jobs:
            try:
                assert job.vector is not None
                defended[job] = check_vectors(apply(job.vector[None], job.defence), model.inverter.info)[0]
            except UnembedError as error:
                job.tell(error)
        if not defended:
            return
        lengths = model.likeliest_lengths(np.stack(list(defended.values())))
        for (job, vector), length in zip(defended.items(), lengths, strict=True):
            tries_several = job.options is not None and (job.options.candidates > 1 or job.guided)
            known = job.length or (None if tries_several else length)
            job.prepared = Prepared(vector, describe_vector(vector), known)
            job.tell(job.prepared)
        again = [job for job in defended if job.options is not None]
        with self._changed:
            self._waiting = sorted([*self._waiting, *(job for job in again if not job.cancelled)], key=_arrival)

    def _decode(self, jobs: list[Job]) -> None:
        """Decode a batch and tell each job of its own rows."""
        model, options = jobs[0].model, jobs[0].options
        assert options is not None
        begun = time.perf_counter()
        for job in jobs:
            job.tell(Started())
            self._metrics.wait_seconds.observe(begun - job.arrived)
        self._metrics.batch_size.observe(len(jobs))
        steps = model.inverter.decode(
            np.stack([job.prepared.vector for job in jobs if job.prepared]),
            options,
            lengths=None if jobs[0].length is None else [job.length or 0 for job in jobs],
            encoder=model.shared_encoder if options.strategy == "guided" else None,
            batch_size=self._settings.largest_batch,
        )
        with closing(steps), self._metrics.decode_seconds.labels(options.strategy).time():  # type: ignore[type-var]
            for step in steps:
                if self._stopping or all(job.cancelled for job in jobs):
                    return
                if time.perf_counter() - begun > self._settings.work_seconds:
                    raise Refusal(
                        504,
                        f"Decoding took longer than {self._settings.work_seconds:g} seconds.",
                        "Ask for fewer steps, candidates or rounds.",
                    )
                self._tell(step, jobs, begun)

    def _tell(self, step: Step, jobs: list[Job], begun: float) -> None:
        model, options = jobs[0].model, jobs[0].options
        assert options is not None
        for place, (row, candidate, final) in enumerate(
            zip(step.rows.tolist(), step.candidate.tolist(), step.final.tolist(), strict=True)
        ):
            # Of several hypotheses the first is shown, and in the end the one that was kept.
            if jobs[row].watched and (candidate == 0 or final):
                jobs[row].tell(show_step(step, place, model))
        found = model.inverter.read(step, options)
        if not found:
            return
        milliseconds = 1000 * (time.perf_counter() - begun)
        tokens = {
            int(step.rows[place]): model.inverter.info.vocabulary.text_ids(step.canvas[place].tolist())
            for place in step.final.nonzero()[:, 0].tolist()
        }
        cosines: dict[int, float] = {}
        if model.shared_encoder is not None:
            again = model.shared_encoder.encode([inversion.text for inversion in found.values()])
            for row, vector in zip(found, again, strict=True):
                original = jobs[row].vector
                assert original is not None
                cosines[row] = cosine(vector, original)
        for row, inversion in found.items():
            jobs[row].tell(_result(jobs[row], inversion, tokens[row], cosines.get(row), begun, milliseconds))


def _result(
    job: Job, inversion: Inversion, ids: list[int], cosine: float | None, begun: float, milliseconds: float
) -> Result:
    assert job.prepared is not None
    return Result(
        text=inversion.text,
        tokens=[
            RecoveredToken(text=text, confidence=confidence)
            for text, confidence in zip(inversion.tokens, inversion.confidences, strict=True)
        ],
        strategy=inversion.strategy,  # type: ignore[arg-type]
        passes=inversion.passes,
        milliseconds=milliseconds,
        waited_milliseconds=1000 * (begun - job.arrived),
        score=inversion.score,
        cosine=cosine,
        encoder_calls=inversion.encoder_calls,
        reference=describe_reference(job.trip, job.model),
        measures=measure(ids, job.trip),
        statistics=job.prepared.statistics,
        model=job.model.name,
    )


def _fail(jobs: Iterable[Job], error: UnembedError) -> None:
    for job in jobs:
        job.tell(error)


def _arrival(job: Job) -> float:
    return job.arrived


def _origin(error: Exception) -> str:
    """Return the file and line that raised an error."""
    trace = error.__traceback__
    while trace is not None and trace.tb_next is not None:
        trace = trace.tb_next
    return "nowhere" if trace is None else f"{trace.tb_frame.f_code.co_filename}:{trace.tb_lineno}"
