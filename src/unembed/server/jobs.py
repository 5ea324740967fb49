"""One vector on its way through the server: what it asks for, and what its request is told of it. Knows no HTTP."""

import asyncio
import time
from collections.abc import Hashable
from dataclasses import dataclass, field

import numpy as np

from unembed.canvas import RoundTrip
from unembed.config import DecodingConfig
from unembed.defences import Defence
from unembed.errors import UnembedError
from unembed.server.models import ServedModel
from unembed.server.schemas import Result, Statistics, StepShown


@dataclass(frozen=True, eq=False)
class Prepared:
    """The vector as it is inverted, and what is known before the first pass."""

    vector: np.ndarray
    statistics: Statistics
    length: int | None
    """Tokens that the text will have; None when several lengths are tried."""


@dataclass(frozen=True)
class Started:
    """The first pass is next."""


Event = Prepared | Started | StepShown | Result | UnembedError
"""What a job's request is told, in this order; the last one is a Result or an error, or for an encoding Prepared."""


@dataclass(eq=False)
class Job:
    """A vector to be made, to be inverted, or both. Made on the event loop; worked on by threads."""

    model: ServedModel
    options: DecodingConfig | None
    """None when the vector is all that is wanted."""
    trip: RoundTrip | None
    """The text, if the vector is yet to be made from one."""
    vector: np.ndarray | None
    """(d,) before its defence; None until it is made."""
    defence: Defence = field(default_factory=Defence)
    length: int | None = None
    watched: bool = False
    """Whether every pass is to be told."""
    prepared: Prepared | None = None
    cancelled: bool = False
    arrived: float = field(default_factory=time.perf_counter)
    events: asyncio.Queue[Event] = field(default_factory=asyncio.Queue)
    _loop: asyncio.AbstractEventLoop = field(default_factory=asyncio.get_running_loop)

    def tell(self, event: Event) -> None:
        """Tell the request something, from any thread."""
        if not self.cancelled:
            self._loop.call_soon_threadsafe(self.events.put_nowait, event)

    @property
    def together(self) -> Hashable:
        """Jobs that agree in this can be worked on together."""
        if self.prepared is None:
            return self.model.name
        return self.model.name, self.options, self.length is None, self.prepared.length

    @property
    def original(self) -> np.ndarray:
        """The vector before its defence, once it is made."""
        assert self.vector is not None
        return self.vector

    @property
    def guided(self) -> bool:
        """Whether it takes seconds rather than a fraction of one."""
        return self.options is not None and self.options.strategy == "guided"

    @property
    def searching(self) -> bool:
        """Whether a guided search is what comes next."""
        return self.guided and self.prepared is not None

    @property
    def tries_lengths(self) -> bool:
        """Whether its hypotheses may differ in length."""
        return self.options is not None and (self.guided or self.options.candidates > 1)
