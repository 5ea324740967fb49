"""What is done to a batch of jobs: vectors are made and decoded, and each job is told of its own. Knows no queue."""

import time
from collections.abc import Callable
from contextlib import closing

import numpy as np

from unembed.decoding import Step
from unembed.defences import apply
from unembed.errors import UnembedError
from unembed.inverter import Inversion, check_vectors
from unembed.measures import cosine
from unembed.server.jobs import Job, Prepared, Started
from unembed.server.metrics import Metrics
from unembed.server.problems import Refusal
from unembed.server.schemas import RecoveredToken, Result
from unembed.server.settings import Settings
from unembed.server.views import describe_reference, describe_vector, measure, show_step


def prepare(jobs: list[Job]) -> list[Job]:
    """Make the vectors of jobs of one model; return the jobs that are now to be decoded."""
    model = jobs[0].model
    texts = {job: job.trip.embedded for job in jobs if job.vector is None and job.trip is not None}
    if texts:
        vectors = model.needed_encoder("Embedding a text").encode(list(texts.values()))
        for job, vector in zip(texts, vectors, strict=True):
            job.vector = vector
    defended: dict[Job, np.ndarray] = {}
    for job in jobs:
        try:
            defended[job] = check_vectors(apply(job.original[None], job.defence), model.inverter.info)[0]
        except UnembedError as error:
            job.tell(error)
    if not defended:
        return []
    lengths = model.likeliest_lengths(np.stack(list(defended.values())))
    for (job, vector), length in zip(defended.items(), lengths, strict=True):
        known = job.length or (None if job.tries_lengths else length)
        job.prepared = Prepared(vector, describe_vector(vector), known)
        job.tell(job.prepared)
    return [job for job in defended if job.options is not None]


def decode(jobs: list[Job], settings: Settings, metrics: Metrics, check: Callable[[], None]) -> None:
    """Decode jobs that can share passes; ``check`` raises when there is to be an end before the end."""
    model, options = jobs[0].model, jobs[0].options
    assert options is not None
    begun = time.perf_counter()
    for job in jobs:
        job.tell(Started())
        metrics.wait_seconds.observe(begun - job.arrived)
    metrics.batch_size.observe(len(jobs))
    steps = model.inverter.decode(
        np.stack([job.prepared.vector for job in jobs if job.prepared]),
        options,
        lengths=None if jobs[0].length is None else [job.length or 0 for job in jobs],
        encoder=model.shared_encoder if options.strategy == "guided" else None,
        batch_size=settings.largest_batch,
    )
    with closing(steps), metrics.decode_seconds.labels(options.strategy).time():  # type: ignore[type-var]
        for step in steps:
            check()
            if all(job.cancelled for job in jobs):
                return
            if time.perf_counter() - begun > settings.work_seconds:
                raise Refusal(
                    504,
                    f"Decoding took longer than {settings.work_seconds:g} seconds.",
                    "Ask for fewer steps, candidates or rounds.",
                )
            _show(step, jobs)
            _finish(step, jobs, begun)


def _show(step: Step, jobs: list[Job]) -> None:
    """Tell the jobs that are watched of a pass."""
    for place, (row, candidate, final) in enumerate(
        zip(step.rows.tolist(), step.candidate.tolist(), step.final.tolist(), strict=True)
    ):
        # Of several hypotheses the first is shown, and in the end the one that was kept.
        if jobs[row].watched and (candidate == 0 or final):
            jobs[row].tell(show_step(step, place, jobs[row].model))


def _finish(step: Step, jobs: list[Job], begun: float) -> None:
    """Tell the jobs that a pass has finished of their results."""
    model, options = jobs[0].model, jobs[0].options
    assert options is not None
    found = model.inverter.read(step, options)
    if not found:
        return
    milliseconds = 1000 * (time.perf_counter() - begun)
    cosines: dict[int, float] = {}
    if model.shared_encoder is not None:
        again = model.shared_encoder.encode([inversion.text for inversion in found.values()])
        cosines = {row: float(cosine(vector, jobs[row].original)) for row, vector in zip(found, again, strict=True)}
    for row, inversion in found.items():
        jobs[row].tell(_result(jobs[row], inversion, cosines.get(row), begun, milliseconds))


def _result(job: Job, inversion: Inversion, cosine: float | None, begun: float, milliseconds: float) -> Result:
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
        measures=measure(inversion.ids, job.trip),
        statistics=job.prepared.statistics,
        model=job.model.name,
    )
