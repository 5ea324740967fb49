"""How long decoding takes on this machine, learnt from what was decoded. For estimates only."""

from unembed.server.jobs import Job

# Weight of the newest measurement in the running mean.
_NEWEST = 0.3


class Pace:
    """Seconds of computing per vector and pass, by model and strategy."""

    def __init__(self) -> None:
        self._seconds: dict[tuple[str, str], float] = {}

    def learn(self, job: Job, seconds: float) -> None:
        """Take in how many seconds of computing one vector took."""
        key, passes = _kind(job)
        measured = seconds / passes
        before = self._seconds.get(key, measured)
        self._seconds[key] = before + _NEWEST * (measured - before)

    def expect(self, job: Job) -> float | None:
        """Return how many seconds of computing a vector will take; None when nothing like it was decoded yet."""
        if job.only_vector:
            return 0.0
        key, passes = _kind(job)
        seconds = self._seconds.get(key)
        return None if seconds is None else passes * seconds


def _kind(job: Job) -> tuple[tuple[str, str], int]:
    """Return what a job's pace depends on, and how many passes or rounds it asks for."""
    if job.slots is not None:
        return (job.model.name, "fill blind" if job.slots.blind else "fill"), 1
    options = job.options
    assert options is not None
    steps = job.model.inverter.info.model.canvas_length if options.strategy == "writer" else options.steps
    passes = options.search.round_limit + 1 if job.guided else steps * options.hypotheses
    return (job.model.name, options.strategy), passes
