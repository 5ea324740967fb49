"""What is done to a batch of jobs, a pass at a time: vectors are made, then decoded. Knows no queue.

Work can stop after any pass and go on later, in any thread, so that other work can go between two passes.
"""

import time
from collections.abc import Iterator, Sequence
from typing import Protocol

import numpy as np

from unembed.decoding import SearchRounds, Step
from unembed.defences import apply
from unembed.errors import UnembedError
from unembed.inverter import Inversion, check_vectors
from unembed.measures import cosine
from unembed.server.headline import mark_words, write_headline
from unembed.server.jobs import Job, Prepared, Started
from unembed.server.metrics import Metrics
from unembed.server.pace import Pace
from unembed.server.problems import Refusal
from unembed.server.schemas import RecoveredToken, Result, StepShown
from unembed.server.settings import Settings
from unembed.server.views import describe_reference, describe_vector, measure, show_step


class Work(Protocol):
    """A batch of jobs that is worked on together."""

    jobs: list[Job]

    def advance(self) -> bool:
        """Work for a moment; return whether there is more to do."""
        ...

    def close(self) -> None:
        """End early, or tidy up at the end."""
        ...


def began(jobs: Sequence[Job], metrics: Metrics) -> float:
    """Tell jobs that their search or first pass is next, count them, and return the time."""
    now = time.perf_counter()
    for job in jobs:
        job.tell(Started())
        metrics.wait_seconds.observe(now - job.arrived)
    metrics.batch_size.observe(len(jobs))
    return now


def took_too_long(what: str, settings: Settings, remedy: str) -> Refusal:
    """Say that a job has used up its computing time."""
    return Refusal(504, f"{what} took longer than {settings.work_seconds:g} seconds.", remedy)


class Preparation:
    """Makes the vectors of jobs of one model."""

    def __init__(self, jobs: list[Job]) -> None:
        self.jobs = jobs

    def advance(self) -> bool:
        """Make all vectors."""
        model = self.jobs[0].model
        texts = {job: job.trip.embedded for job in self.jobs if job.vector is None and job.trip is not None}
        if texts:
            vectors = model.needed_encoder("Embedding a text").encode(list(texts.values()))
            for job, vector in zip(texts, vectors, strict=True):
                job.vector = vector
        defended: dict[Job, np.ndarray] = {}
        for job in self.jobs:
            try:
                defended[job] = check_vectors(apply(job.original[None], job.defence), model.inverter.info)[0]
            except UnembedError as error:
                job.tell(error)
        if not defended:
            return False
        vectors = np.stack(list(defended.values()))
        lengths, words = model.likeliest_lengths(vectors), model.words(vectors)
        for (job, vector), length, own in zip(defended.items(), lengths, words, strict=True):
            known = job.length or (None if job.tries_lengths else length)
            # A vector that the encoder has just made is one of its own, whatever a defence does to it then.
            warnings = [] if job.trip else model.inverter.warnings(job.original[None])
            # Of a text that is known, the page says itself where it was cut.
            notices = [] if job.trip or warnings else model.inverter.notices(job.original[None])
            job.prepared = Prepared(vector, describe_vector(vector), known, warnings, notices, own)
            job.tell(job.prepared)
        return False

    def close(self) -> None:
        """There is nothing to tidy up."""

    @property
    def to_decode(self) -> list[Job]:
        """Jobs that go on to be decoded."""
        return [job for job in self.jobs if job.prepared and not job.only_vector and not job.cancelled]


class Decoding:
    """Decodes jobs that can share passes."""

    def __init__(self, jobs: list[Job], settings: Settings, metrics: Metrics, pace: Pace) -> None:
        self.jobs = jobs
        self.seconds = 0.0
        """Computing time so far, without the time that other work took in between."""
        self._settings, self._metrics, self._pace = settings, metrics, pace
        self._model = jobs[0].model
        assert jobs[0].options is not None
        self._options = jobs[0].options
        self._started = 0.0
        self._rounds: Iterator[list[Step]] | None = None
        self._held: dict[tuple[int, int], list[StepShown]] = {}
        """Passes that are not shown yet, by vector and hypothesis."""

    def advance(self) -> bool:
        """Take one pass, or one round of a guided search."""
        if all(job.cancelled for job in self.jobs):
            return False
        before = time.perf_counter()
        if self._rounds is None:
            self._rounds = self._start()
        if isinstance(self._rounds, SearchRounds):
            self._rounds.stop([row for row, job in enumerate(self.jobs) if job.cancelled or job.stopped])
        steps = next(self._rounds, None)
        if steps is None:
            return False
        inversions: dict[int, Inversion] = {}
        for step in steps:
            self._show(step)
            inversions |= self._model.inverter.read(step, self._options)
        cosines = self._cosines(inversions)
        self.seconds += time.perf_counter() - before
        for row, inversion in inversions.items():
            self.jobs[row].tell(self._result(self.jobs[row], inversion, cosines.get(row)))
            self._pace.learn(self.jobs[row], self.seconds / len(self.jobs))
        if self.seconds > self._settings.work_seconds * len(self.jobs):
            raise took_too_long("Decoding", self._settings, "Ask for fewer steps, candidates or rounds.")
        return True

    def close(self) -> None:
        """Count the time that the passes took, and let go of what they need."""
        if self._rounds is not None:
            self._metrics.decode_seconds.labels(self._options.strategy).observe(self.seconds)
        self._rounds = None

    def _start(self) -> Iterator[list[Step]]:
        self._started = began(self.jobs, self._metrics)
        inverter, size = self._model.inverter, self._settings.largest_batch
        vectors = np.stack([job.prepared.vector for job in self.jobs if job.prepared])
        lengths = None if self.jobs[0].length is None else [job.length or 0 for job in self.jobs]
        if self._options.searches:
            needed = self._options.needs_encoder
            encoder = self._model.needed_encoder("Guided decoding") if needed else None
            return inverter.search_rounds(vectors, self._options, encoder=encoder, lengths=lengths, batch_size=size)
        return ([step] for step in inverter.decode(vectors, self._options, lengths=lengths, batch_size=size))

    def _show(self, step: Step) -> None:
        """Send a pass to the jobs that are watched; of several hypotheses, in the end, the passes of the one kept."""
        for index, (row, candidate, final) in enumerate(
            zip(step.rows.tolist(), step.candidate.tolist(), step.final.tolist(), strict=True)
        ):
            job = self.jobs[row]
            if not job.watched or (job.guided and candidate and not final):
                continue
            passes = self._held.setdefault((row, candidate), [])
            # The last pass of the hypothesis that is kept comes once more, unchanged, when the others have ended.
            if not passes or not final or bool(step.changed[index].any()):
                passes.append(show_step(step, index, self._model))
            if final or job.guided or self._options.hypotheses == 1:
                for shown in self._held.pop((row, candidate)):
                    job.tell(shown)

    def _cosines(self, inversions: dict[int, Inversion]) -> dict[int, float]:
        """Compare the recovered texts' vectors with the vectors before their defence, where there is an encoder."""
        if self._model.shared_encoder is None or not inversions:
            return {}
        vectors = self._model.shared_encoder.encode([inversion.text for inversion in inversions.values()])
        return {
            row: float(cosine(vector, self.jobs[row].original)) for row, vector in zip(inversions, vectors, strict=True)
        }

    def _result(self, job: Job, inversion: Inversion, cosine: float | None) -> Result:
        assert job.prepared is not None
        return Result(
            text=inversion.text,
            tokens=[
                RecoveredToken(text=text, confidence=confidence)
                for text, confidence in zip(inversion.tokens, inversion.confidences, strict=True)
            ],
            strategy=inversion.strategy,  # type: ignore[arg-type]
            passes=inversion.passes,
            milliseconds=1000 * self.seconds,
            waited_milliseconds=1000 * (self._started - job.arrived),
            score=inversion.score,
            cosine=cosine,
            encoder_calls=inversion.encoder_calls,
            surrogate_calls=inversion.surrogate_calls,
            words=mark_words(job.prepared.words, job.trip),
            headline=None if job.trip is None else write_headline(inversion.text, job.trip, job.model),
            reliability=job.model.judge.judge(inversion, job.prepared.vector, cosine, job.prepared.warnings),
            reference=describe_reference(job.trip, job.model),
            measures=measure(inversion.ids, job.trip),
            statistics=job.prepared.statistics,
            warnings=job.prepared.warnings,
            notices=job.prepared.notices,
            model=job.model.name,
        )
