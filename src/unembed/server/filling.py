"""Fills the slots of one job's template, a moment at a time. Knows no queue, and not how candidates are compared."""

import time
from dataclasses import asdict

from unembed.filling.filler import Filling
from unembed.filling.steps import Steps
from unembed.server.jobs import Job
from unembed.server.metrics import Metrics
from unembed.server.pace import Pace
from unembed.server.schemas import FillResult
from unembed.server.settings import Settings
from unembed.server.work import began, took_too_long


class SlotFilling:
    """Work on one job; like other searches it stops between two moments, and goes on later."""

    def __init__(self, job: Job, settings: Settings, metrics: Metrics, pace: Pace) -> None:
        self.jobs = [job]
        self.seconds = 0.0
        """Computing time so far, without the time that other work took in between."""
        self._job, self._settings, self._metrics, self._pace = job, settings, metrics, pace
        self._started = 0.0
        self._steps: Steps[Filling] | None = None

    def advance(self) -> bool:
        """Embed some texts, or take some passes."""
        if self._job.cancelled:
            return False
        before = time.perf_counter()
        if self._steps is None:
            self._started = began(self.jobs, self._metrics)
            self._steps = self._start()
        filling = _next(self._steps)
        self.seconds += time.perf_counter() - before
        if filling is not None:
            self._job.tell(self._result(filling))
            self._pace.learn(self._job, self.seconds)
            return False
        if self.seconds > self._settings.work_seconds:
            raise took_too_long("Filling", self._settings, "Ask for fewer candidates or calls.")
        return True

    def close(self) -> None:
        """Count the time that it took, and let go of what it needs."""
        if self._steps is not None:
            self._metrics.decode_seconds.labels("fill").observe(self.seconds)
            self._steps.close()
        self._steps = None

    def _start(self) -> Steps[Filling]:
        slots, prepared = self._job.slots, self._job.prepared
        assert slots is not None
        assert prepared is not None
        filler = self._job.model.inverter.prepare_filling(
            slots.template,
            slots.candidates,
            encoder=None if slots.blind else self._job.model.shared_encoder,
            calls=slots.calls,
            top=slots.top,
            seed=slots.seed,
        )
        return filler.steps(prepared.vector)

    def _result(self, filling: Filling) -> FillResult:
        assert self._job.prepared is not None
        return FillResult.model_validate(
            asdict(filling)
            | {
                "milliseconds": 1000 * self.seconds,
                "waited_milliseconds": 1000 * (self._started - self._job.arrived),
                "warnings": self._job.prepared.warnings,
                "model": self._job.model.name,
            }
        )


def _next(steps: Steps[Filling]) -> Filling | None:
    """Work for a moment; return the answers once they are there."""
    try:
        next(steps)
    except StopIteration as end:
        filling: Filling = end.value
        return filling
    return None
