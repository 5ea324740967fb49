"""What a server allows: limits, time-outs, who may ask. Knows nothing of HTTP."""

import os
from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field, SecretStr

from unembed.config import Count, Positive

Seconds = Annotated[float, Field(gt=0.0)]


class Limits(BaseModel):
    """How much one request may ask for."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    body_bytes: Positive = Field(default=4 << 20, description="Bytes of a request's body.")
    text_characters: Positive = Field(default=2_000, description="Characters of a text.")
    batch: Positive = Field(default=64, description="Vectors or texts of a batch request.")
    steps: Positive = Field(default=64, description="Passes.")
    candidates: Positive = Field(default=16, description="Hypotheses per vector.")
    rounds: Count = Field(default=50, description="Rounds of guided search.")
    slots: Positive = Field(default=8, description="Slots of a template.")
    slot_candidates: Positive = Field(default=100_000, description="Candidates for the slots of a template, together.")
    candidate_characters: Positive = Field(default=100, description="Characters of a candidate.")
    calls: Positive = Field(default=6_000, description="Texts that are embedded to fill slots.")
    queue: Positive = Field(default=256, description="Vectors that may wait, of all requests together.")


class Settings(BaseModel):
    """How a server runs."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    limits: Limits = Limits()
    workers: Positive = Field(default_factory=lambda: min(4, _cores()))
    """Threads that decode, each a batch of its own."""
    threads: Positive = 1
    """Cores that share the products of one batch. Batches side by side lose less to waiting than shared products."""
    largest_batch: Positive = 32
    """Vectors that are decoded together."""
    searches: Positive = 8
    """Guided searches that are under way at once; others wait."""
    coalesce_seconds: Annotated[float, Field(ge=0.0)] = 0.005
    """How long a new vector waits for others to be decoded with."""
    turn_seconds: Seconds = 0.25
    """How long a batch is decoded before others have their turn."""
    wait_seconds: Seconds = 60.0
    """How long a request may wait until the first of its vectors is worked on."""
    work_seconds: Seconds = 120.0
    """How much computing time a vector may take."""
    header_seconds: Seconds = 10.0
    """How long a connection may take to send the headers of a request."""
    body_seconds: Seconds = 30.0
    """How long a request may take to send its body."""
    api_key: SecretStr | None = None
    """If given, every request must have it."""
    allowed_hosts: tuple[str, ...] = ()
    """Names that the server may be reached by, besides localhost and addresses in numbers. ``*`` allows any name."""
    allowed_origins: tuple[str, ...] = ()
    """Origins whose pages may use the API from a browser, besides the server's own page."""


def _cores() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
