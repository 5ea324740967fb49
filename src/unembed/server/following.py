"""How a request waits for its jobs: time-outs, its position in the queue, and what happens when its client leaves."""

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence
from typing import Any

from starlette.requests import ClientDisconnect, Request

from unembed.errors import UnembedError
from unembed.server.batcher import Batcher
from unembed.server.jobs import Job, Prepared, Started
from unembed.server.problems import busy
from unembed.server.schemas import FillResult, Queued, Result, StepShown

# How often the position in the queue is looked up.
_LOOK_SECONDS = 0.25

Outcome = Prepared | Result | FillResult


async def follow(
    job: Job, batcher: Batcher, wait_seconds: float
) -> AsyncIterator[tuple[str, Queued | Prepared | StepShown | Result]]:
    """Yield all that happens to a job, with the names of the events; the last is ``done``."""
    names: dict[type, str] = {Prepared: "start", StepShown: "step", Result: "done"}
    deadline = asyncio.get_running_loop().time() + wait_seconds
    started, shown = False, None
    while True:
        try:
            async with asyncio.timeout(None if started else _LOOK_SECONDS):
                event = await job.events.get()
        except TimeoutError:
            if asyncio.get_running_loop().time() > deadline:
                raise _waited_too_long(wait_seconds) from None
            queued = batcher.queued(job)
            if queued is not None and queued != shown:
                shown = queued
                yield "queued", queued
            continue
        if isinstance(event, UnembedError):
            raise event
        if isinstance(event, Started):
            started = True
            continue
        assert not isinstance(event, FillResult)
        yield names[type(event)], event
        if isinstance(event, Result):
            return


async def outcomes(jobs: Sequence[Job], batcher: Batcher, request: Request, wait_seconds: float) -> list[Outcome]:
    """Submit jobs and wait for all of them; give up when one fails, or when the client goes away."""
    batcher.submit(jobs)
    work = asyncio.create_task(_all_outcomes(jobs, wait_seconds))
    gone = asyncio.create_task(_gone(request))
    both: set[asyncio.Task[Any]] = {work, gone}
    try:
        await asyncio.wait(both, return_when=asyncio.FIRST_COMPLETED)
        if not work.done():
            raise ClientDisconnect
        return await work
    finally:
        batcher.cancel(jobs)
        work.cancel()
        gone.cancel()


async def _all_outcomes(jobs: Sequence[Job], wait_seconds: float) -> list[Outcome]:
    try:
        async with asyncio.timeout(wait_seconds) as waiting:
            # Once the first job has started the request no longer waits: its other jobs follow in turn.
            return await asyncio.gather(*(_outcome(job, lambda: waiting.reschedule(None)) for job in jobs))
    except TimeoutError:
        raise _waited_too_long(wait_seconds) from None


async def _outcome(job: Job, on_start: Callable[[], None]) -> Outcome:
    while True:
        event = await job.events.get()
        if isinstance(event, UnembedError):
            raise event
        if isinstance(event, Result | FillResult) or (isinstance(event, Prepared) and job.only_vector):
            return event
        if isinstance(event, Started):
            on_start()


async def _gone(request: Request) -> None:
    """Return when the client has closed the connection."""
    while (await request.receive())["type"] != "http.disconnect":
        pass


def _waited_too_long(seconds: float) -> UnembedError:
    return busy(f"The request waited for {seconds:g} seconds, and its turn has not come.", retry_after=10)
