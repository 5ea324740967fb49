"""The HTTP server: routes and how they answer. Decoding happens elsewhere (:mod:`unembed.server.batcher`)."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Annotated, Any

from fastapi import Depends, FastAPI, Request, Response
from fastapi.exceptions import RequestValidationError
from fastapi.middleware.cors import CORSMiddleware
from fastapi.responses import HTMLResponse, JSONResponse
from fastapi.security import APIKeyHeader, HTTPBearer
from fastapi.sse import EventSourceResponse, ServerSentEvent
from pydantic import BaseModel
from starlette.exceptions import HTTPException
from starlette.routing import Route

from unembed._version import __version__
from unembed.defences import DEFENCES, neighbours_kept, words_leaked
from unembed.errors import UnembedError
from unembed.measures import MEASURES
from unembed.server.batcher import Batcher
from unembed.server.bodies import bounded_route
from unembed.server.following import follow, outcomes
from unembed.server.headline import mark_words
from unembed.server.intake import Intake
from unembed.server.jobs import Job, Prepared
from unembed.server.metrics import CONTENT_TYPE, Metrics
from unembed.server.models import Models, ServedModel
from unembed.server.page import Page
from unembed.server.problems import Refusal, status_of
from unembed.server.protection import Protection, problem
from unembed.server.schemas import (
    BatchRequest,
    BatchResult,
    DefenceDescription,
    Encoded,
    EncodeRequest,
    ExampleList,
    FillRequest,
    FillResult,
    Health,
    InvertRequest,
    MeasureDescription,
    ModelList,
    Problem,
    Queued,
    QueueState,
    Result,
    Start,
    StepShown,
    Stopped,
    StopRequest,
    StreamProblem,
    WordsOfVector,
    WordsRequest,
    WordsResult,
)
from unembed.server.settings import Limits, Settings
from unembed.server.views import describe_reference
from unembed.text import well_formed

_EXAMPLES = Path(__file__).parent / "examples.json"
# Values of a request besides its texts and vectors.
_OTHER_VALUES = 100
_DESCRIPTION = """Reads the text back out of embedding vectors.

Errors are `{message, remedy}`: 401 without the key, 408 for a body that does not arrive, 413 for a body that is too
large, 421 for a host name that is not allowed. 422 for a request that is wrong, 503 with `Retry-After` when too much is
waiting, 504 when decoding takes too long."""
_PROBLEMS: dict[int | str, dict[str, Any]] = {
    401: {"model": Problem, "description": "The API key is missing or wrong."},
    408: {"model": Problem, "description": "The body did not arrive in time."},
    413: {"model": Problem, "description": "The body is too large."},
    422: {"model": Problem, "description": "Something about the request is wrong; the message says what was expected."},
}
_WORK_PROBLEMS: dict[int | str, dict[str, Any]] = {
    **_PROBLEMS,
    503: {
        "model": Problem,
        "description": "Too much is waiting.",
        "headers": {"Retry-After": {"description": "Seconds.", "schema": {"type": "integer"}}},
    },
    504: {"model": Problem, "description": "Decoding took too long."},
}
# FastAPI would describe a stream's errors as streams.
_STREAM_PROBLEMS: dict[int | str, dict[str, Any]] = {
    status: {key: value for key, value in answer.items() if key != "model"}
    | {"content": {"application/json": {"schema": {"$ref": "#/components/schemas/Problem"}}}}
    for status, answer in _WORK_PROBLEMS.items()
}


def make_app(settings: Settings, models: Sequence[ServedModel]) -> FastAPI:
    """Put a server together."""
    served = Models(models)
    metrics = Metrics()
    batcher = Batcher(settings, metrics)
    intake = Intake(served, settings.limits)
    described = ModelList(models=served.describe(), defences=_defences(), measures=_measures(), limits=settings.limits)
    examples = ExampleList.model_validate_json(_EXAMPLES.read_bytes())
    page = Page()

    @asynccontextmanager
    async def lifespan(_app: FastAPI) -> AsyncIterator[None]:
        batcher.start()
        yield
        await asyncio.to_thread(batcher.stop)

    app = FastAPI(
        title="unembed",
        version=__version__,
        description=_DESCRIPTION,
        lifespan=lifespan,
        docs_url=None,  # these pages load scripts from elsewhere
        redoc_url=None,
        openapi_tags=[{"name": "invert"}, {"name": "about"}],
    )
    app.state.turn_away = batcher.turn_away
    widest = max(model.dimension for model in described.models)
    app.router.route_class = bounded_route(_most_values(settings.limits, widest), max(settings.limits.batch, widest))
    # Only for the description: the check itself comes before the body is read.
    key = [Depends(HTTPBearer(auto_error=False)), Depends(APIKeyHeader(name="X-API-Key", auto_error=False))]
    keyed = key if settings.api_key else []
    _answer_errors(app)

    async def submitted(body: InvertRequest) -> AsyncIterator[Job]:
        """Let a streamed request wait. Its mistakes are answered with a status, before the stream begins."""
        job = await intake.inversion(body, watched=True)
        batcher.submit([job])
        try:
            yield job
        finally:
            batcher.cancel([job])

    @app.post(
        "/api/invert/stream",
        tags=["invert"],
        dependencies=keyed,
        responses=_STREAM_PROBLEMS,
        response_class=EventSourceResponse,
    )
    async def invert_and_stream(
        job: Annotated[Job, Depends(submitted)],
    ) -> AsyncIterator[Queued | Start | StepShown | Result | StreamProblem]:
        """Invert a text or a vector, and show every pass.

        Events: `queued` {position, seconds} while it waits, `start` with the vector, `step` after each pass, and in the
        end `done` with a Result, or `error` {message, remedy, status}.
        """
        try:
            async for name, event in follow(job, batcher, settings.wait_seconds):
                yield _event(name, _start(job, event) if isinstance(event, Prepared) else event)
        except UnembedError as error:
            yield _event("error", StreamProblem(message=error.problem, remedy=error.remedy, status=status_of(error)))

    @app.post("/api/invert", tags=["invert"], dependencies=keyed, responses=_WORK_PROBLEMS)
    async def invert(body: InvertRequest, request: Request) -> Result:
        """Invert a text or a vector."""
        (result,) = await outcomes([await intake.inversion(body)], batcher, request, settings.wait_seconds)
        assert isinstance(result, Result)
        return result

    @app.post("/api/invert/batch", tags=["invert"], dependencies=keyed, responses=_WORK_PROBLEMS)
    async def invert_batch(body: BatchRequest, request: Request) -> BatchResult:
        """Invert several texts or vectors, all in the same way."""
        results = await outcomes(await intake.batch(body), batcher, request, settings.wait_seconds)
        return BatchResult(results=[result for result in results if isinstance(result, Result)])

    @app.post("/api/invert/stop", tags=["invert"], dependencies=keyed, responses=_PROBLEMS)
    async def stop_search(body: StopRequest) -> Stopped:
        """End a search now, with the best text that it has."""
        return Stopped(stopped=batcher.stop_search(body.id))

    @app.post("/api/fill", tags=["invert"], dependencies=keyed, responses=_WORK_PROBLEMS)
    async def fill(body: FillRequest, request: Request) -> FillResult:
        """Find out what stands in the slots of a text that is known otherwise."""
        (result,) = await outcomes([await intake.filling(body)], batcher, request, settings.wait_seconds)
        assert isinstance(result, FillResult)
        return result

    @app.post("/api/words", tags=["invert"], dependencies=keyed, responses=_WORK_PROBLEMS)
    async def words(body: WordsRequest, request: Request) -> WordsResult:
        """Name the words that vectors give away, without inverting them: a first look at many vectors."""
        prepared = await outcomes(await intake.words(body), batcher, request, settings.wait_seconds)
        return WordsResult(
            results=[
                WordsOfVector(words=each.words, warnings=each.warnings)
                for each in prepared
                if isinstance(each, Prepared)
            ]
        )

    @app.post("/api/encode", tags=["invert"], dependencies=keyed, responses=_WORK_PROBLEMS)
    async def encode(body: EncodeRequest, request: Request) -> Encoded:
        """Embed a text with a model's encoder."""
        job = await intake.encoding(body)
        (prepared,) = await outcomes([job], batcher, request, settings.wait_seconds)
        reference = describe_reference(job.trip, job.model)
        assert isinstance(prepared, Prepared)
        assert reference is not None
        return Encoded(
            vector=prepared.vector.tolist(),
            statistics=prepared.statistics,
            tokens=reference.tokens,
            cut=reference.cut,
        )

    @app.get("/api/models", tags=["about"], dependencies=keyed, responses={401: _PROBLEMS[401]})
    async def list_models() -> ModelList:
        """List the inverters, the defences and the limits."""
        return described

    @app.get("/api/examples", tags=["about"], dependencies=keyed, responses={401: _PROBLEMS[401]})
    async def list_examples() -> ExampleList:
        """List sentences to try."""
        return examples

    @app.get("/api/queue", tags=["about"], dependencies=keyed, responses={401: _PROBLEMS[401]})
    async def queue() -> QueueState:
        """Say how busy the server is."""
        return batcher.state()

    @app.head("/health", include_in_schema=False)
    @app.get("/health", tags=["about"])
    async def health() -> Health:
        """Say that the server answers."""
        return Health(status="ok", version=__version__, models=served.names)

    @app.get(
        "/metrics",
        tags=["about"],
        dependencies=keyed,
        response_class=Response,
        responses={
            200: {"content": {CONTENT_TYPE: {"schema": {"type": "string"}}}, "description": "Prometheus' text format."},
            401: _PROBLEMS[401],
        },
    )
    async def show_metrics() -> Response:
        """Return all counters in Prometheus' text format."""
        return Response(metrics.text(), media_type=CONTENT_TYPE)

    @app.head("/", include_in_schema=False)
    @app.get("/", include_in_schema=False)
    async def show_page() -> Response:
        return HTMLResponse(page.html, headers={"Cache-Control": "no-cache"})

    paths = frozenset(route.path for route in app.routes if isinstance(route, Route))
    app.mount(page.static_path, page.files, name="static")
    app.add_middleware(Protection, settings=settings, metrics=metrics, paths=paths)
    if settings.allowed_origins:  # the middleware added last sees a request first: a preflight has no key
        app.add_middleware(
            CORSMiddleware,
            allow_origins=settings.allowed_origins,
            allow_methods=["GET", "POST"],
            allow_headers=["Authorization", "Content-Type", "X-API-Key"],
        )
    return app


def _defences() -> list[DefenceDescription]:
    return [
        DefenceDescription(
            kind=kind,
            label=defence.label,
            explanation=defence.explanation,
            low=defence.low,
            high=defence.high,
            unit=defence.unit,
            neighbours=neighbours_kept()[kind],
            naive=words_leaked()[kind].naive,
            adaptive=words_leaked()[kind].adaptive,
        )
        for kind, defence in DEFENCES.items()
    ]


def _measures() -> list[MeasureDescription]:
    names = MeasureDescription.model_fields
    everyday = [measure for measure in MEASURES if measure.everyday]
    return [MeasureDescription(**{name: getattr(measure, name) for name in names}) for measure in everyday]


def _most_values(limits: Limits, widest: int) -> int:
    """Return how many values, or commas in texts, a body within the limits can have; ``widest``: the longest vector."""
    batch = limits.batch * max(widest, limits.text_characters)
    return max(batch, limits.slot_candidates + limits.text_characters + widest) + _OTHER_VALUES


def _event(name: str, data: BaseModel) -> Any:
    """Name an event. The type is the data's, as far as the description is concerned."""
    return ServerSentEvent(event=name, data=data)


def _start(job: Job, prepared: Prepared) -> Start:
    return Start(
        id=job.id,
        model=job.model.name,
        words=mark_words(prepared.words, job.trip),
        length=prepared.length,
        statistics=prepared.statistics,
        vector=prepared.vector.tolist(),
        reference=describe_reference(job.trip, job.model),
    )


def _answer_errors(app: FastAPI) -> None:
    """Answer every kind of error with a message and a remedy."""

    @app.exception_handler(UnembedError)
    async def refused(_request: Request, error: UnembedError) -> JSONResponse:
        retry = error.retry_after if isinstance(error, Refusal) else None
        headers = None if retry is None else {"Retry-After": str(retry)}
        return problem(status_of(error), error.problem, error.remedy, headers)

    @app.exception_handler(RequestValidationError)
    async def invalid(_request: Request, error: RequestValidationError) -> JSONResponse:
        mistakes = error.errors()
        first = "; ".join(_explain(mistake) for mistake in mistakes[:3])
        more = f" (and {len(mistakes) - 3} more)" if len(mistakes) > 3 else ""
        return problem(422, first + more, "See /openapi.json for what can be asked.")

    @app.exception_handler(HTTPException)
    async def other(_request: Request, error: HTTPException) -> JSONResponse:
        if isinstance(error.detail, tuple):
            return problem(error.status_code, *error.detail)
        if error.status_code == 400:  # a body that is not even text
            return problem(422, "The body cannot be read; expected JSON.", "Send JSON in UTF-8.")
        return problem(error.status_code, error.detail, "See /openapi.json for what can be asked.", error.headers)


def _explain(mistake: dict[str, Any]) -> str:
    """Say what is wrong where, without quoting the request."""
    if mistake["type"] == "json_invalid":
        return "the body: expected JSON"
    where = ".".join(str(part) for part in mistake["loc"][1:]) or "the body"
    return well_formed(f"{where[:200]}: {mistake['msg'].removeprefix('Value error, ')}")
