"""From requests to jobs: which model, within which limits, and whether vector and text can be used."""

import sys
from collections.abc import Sequence
from typing import Any

import numpy as np
from starlette.concurrency import run_in_threadpool

from unembed.canvas import RoundTrip
from unembed.config import SEARCHES, DecodingConfig
from unembed.defences import Defence
from unembed.errors import ConfigError, UnembedError, VectorError
from unembed.inverter import check_lengths, check_vectors, make_options
from unembed.server.jobs import Job
from unembed.server.models import Models, ServedModel
from unembed.server.schemas import (
    BatchRequest,
    ChooseModel,
    DecodingOptions,
    EncodeRequest,
    FillRequest,
    InvertRequest,
    WordsRequest,
)
from unembed.server.settings import Limits
from unembed.server.slots import SlotOptions, read_slots

# Beyond these the squares leave the range of float32.
_NORMS = (1e-12, 1e12)


class Intake:
    """Turns requests into jobs, or says what is wrong with them."""

    def __init__(self, models: Models, limits: Limits) -> None:
        self._models = models
        self._limits = limits

    async def encoding(self, request: EncodeRequest) -> Job:
        """Take in a text that should only be embedded."""
        model = self._models.find(request.model)
        return await self._job(request, model, None, request.text)

    async def words(self, request: WordsRequest) -> list[Job]:
        """Take in vectors whose words are wanted."""
        model = self._models.find(request.model)
        return await self._several(request, model, None, request.vectors)

    async def inversion(self, request: InvertRequest, *, watched: bool = False) -> Job:
        """Take in a text or a vector to invert."""
        model, options = self._choose(request)
        return await self._job(request, model, options, request.text or request.vector, watched=watched)

    async def batch(self, request: BatchRequest) -> list[Job]:
        """Take in several texts or vectors to invert."""
        model, options = self._choose(request)
        return await self._several(request, model, options, request.texts or request.vectors or [])

    async def filling(self, request: FillRequest) -> Job:
        """Take in a template whose slots should be filled, with a text or a vector."""
        model = self._models.find(request.model)
        if not request.blind:
            model.needed_encoder("Filling slots", "Give a vector, and `blind: true` to do without the encoder.")
        slots = await run_in_threadpool(read_slots, request, self._limits)
        return await self._job(request, model, None, request.text or request.vector, slots=slots)

    async def _several(
        self,
        request: ChooseModel,
        model: ServedModel,
        options: DecodingConfig | None,
        given: Sequence[str | list[float]],
    ) -> list[Job]:
        if len(given) > self._limits.batch:
            raise ConfigError(
                f"There are {len(given)} in the batch; expected at most {self._limits.batch}.", "Send several batches."
            )
        jobs = []
        for index, item in enumerate(given):
            try:
                jobs.append(await self._job(request, model, options, item))
            except UnembedError as error:
                raise ConfigError(f"Number {index} of the batch: {error.problem}", error.remedy) from error
        return jobs

    def _choose(self, request: DecodingOptions) -> tuple[ServedModel, DecodingConfig]:
        model = self._models.find(request.model)
        for name in ("steps", "candidates", "rounds"):
            asked, most = getattr(request, name), getattr(self._limits, name)
            if asked is not None and asked > most:
                raise ConfigError(f"{name} is {asked}; expected at most {most}.", "See limits in /api/models.")
        wanted: dict[str, Any] = {
            name: getattr(request, name) for name in ("strategy", "steps", "guidance", "temperature", "seed")
        }
        if request.strategy == "guided":
            model.needed_encoder("Guided decoding")
        if request.strategy in SEARCHES:
            rounds = self._limits.rounds if request.rounds is None else request.rounds
            search = {"rounds": rounds, "candidates": request.candidates}
            wanted[request.strategy] = {name: value for name, value in search.items() if value is not None}
        else:
            wanted["candidates"] = request.candidates
        if request.length is not None:
            check_lengths([request.length], 1, model.inverter.info)
        return model, make_options(None, {name: value for name, value in wanted.items() if value is not None})

    async def _job(
        self,
        request: ChooseModel,
        model: ServedModel,
        options: DecodingConfig | None,
        given: str | list[float] | None,
        *,
        slots: SlotOptions | None = None,
        watched: bool = False,
    ) -> Job:
        # With the encoder, a template may be longer than a canvas: its text is not cut.
        longest = None if slots is None else sys.maxsize
        return Job(
            model,
            options,
            trip=await run_in_threadpool(self._fit, model, given, longest) if isinstance(given, str) else None,
            vector=_checked(given, model) if isinstance(given, list) else None,
            defence=request.defence or Defence(),
            length=request.length if isinstance(request, DecodingOptions) else None,
            slots=slots,
            watched=watched,
        )

    def _fit(self, model: ServedModel, text: str, longest: int | None) -> RoundTrip:
        model.needed_encoder("Embedding a text")
        if len(text) > self._limits.text_characters:
            raise ConfigError(
                f"The text has {len(text)} characters; expected at most {self._limits.text_characters}.",
                "Give a shorter text.",
            )
        return model.fit(text, longest)


def _checked(numbers: list[float], model: ServedModel) -> np.ndarray:
    """Return a vector that can be inverted, or say what is wrong with it."""
    info = model.inverter.info
    with np.errstate(over="ignore"):
        norm = float(np.linalg.norm(np.asarray(numbers, dtype=np.float64)))
    expected = f"Expected {info.encoder.dim} finite numbers, not all zero: a vector of {info.encoder.name}."
    if len(numbers) != info.encoder.dim:
        raise VectorError(f"The vector has {len(numbers)} numbers, not {info.encoder.dim}.", expected)
    if norm == 0.0:
        raise VectorError("The vector is all zeros.", expected)
    if not _NORMS[0] <= norm <= _NORMS[1]:
        raise VectorError(f"The vector's norm is {norm:.3g}; expected one from 1e-12 to 1e12.", expected)
    checked: np.ndarray = check_vectors(np.asarray(numbers, dtype=np.float32), info)[0]
    return checked
