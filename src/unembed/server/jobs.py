"""One vector on its way through the server: what it asks for, and what its request hears about it. Knows no HTTP."""

import asyncio
import secrets
import time
from collections.abc import Hashable
from dataclasses import dataclass, field

import numpy as np

from unembed.canvas import RoundTrip
from unembed.config import DecodingConfig
from unembed.defences import Defence
from unembed.errors import UnembedError
from unembed.server.models import ServedModel
from unembed.server.schemas import FillResult, Result, Statistics, StepShown
from unembed.server.slots import SlotOptions


@dataclass(frozen=True, eq=False)
class Prepared:
    """The vector as it is inverted, and what is known before the first pass."""

    vector: np.ndarray
    statistics: Statistics
    length: int | None
    """Tokens that the text will have; None when several lengths are tried."""
    warnings: list[str]
    """Why the vector may not be one of the encoder's."""
    notices: list[str]
    """What to know about the text."""
    words: list[str]
    """That the vector gives away by the readout alone."""


@dataclass(frozen=True)
class Started:
    """The first pass is next."""


Event = Prepared | Started | StepShown | Result | FillResult | UnembedError
"""What a job's request hears, in this order; the last is a result or an error, or Prepared if only that is wanted."""


@dataclass(eq=False)
class Job:
    """A vector to be made, then inverted or searched in slots. Created on the event loop; worked on by threads."""

    model: ServedModel
    options: DecodingConfig | None
    """How it is inverted; None when that is not wanted."""
    trip: RoundTrip | None
    """The text, if the vector is made from one."""
    vector: np.ndarray | None
    """(d,) before its defence; None until it is made."""
    defence: Defence = field(default_factory=Defence)
    length: int | None = None
    slots: SlotOptions | None = None
    """The slots that are filled instead, if a template is given."""
    watched: bool = False
    """Whether the request wants to see every pass."""
    prepared: Prepared | None = None
    cancelled: bool = False
    stopped: bool = False
    """Whether its search should end with the best text so far."""
    id: str = field(default_factory=lambda: secrets.token_urlsafe(12))
    request: int = 0
    """Number of the request that it belongs to; given by the queue."""
    turn: int = 0
    """Where it stands in the queue; given by the queue."""
    arrived: float = field(default_factory=time.perf_counter)
    events: asyncio.Queue[Event] = field(default_factory=asyncio.Queue)
    _loop: asyncio.AbstractEventLoop = field(default_factory=asyncio.get_running_loop)

    def tell(self, event: Event) -> None:
        """Send an event to the request, from any thread."""
        if not self.cancelled:
            self._loop.call_soon_threadsafe(self.events.put_nowait, event)

    @property
    def batch_key(self) -> Hashable:
        """Jobs with equal keys can be worked on together."""
        if self.prepared is None:
            return self.model.name
        if self.slots is not None:
            return self.id
        return self.model.name, self.options, self.length is None, self.prepared.length

    @property
    def original(self) -> np.ndarray:
        """The vector before its defence, once it is made."""
        assert self.vector is not None
        return self.vector

    @property
    def only_vector(self) -> bool:
        """Whether nothing is wanted but the vector."""
        return self.options is None and self.slots is None

    @property
    def guided(self) -> bool:
        """Whether it asks for a search, which takes seconds rather than a fraction of one."""
        return self.slots is not None or (self.options is not None and self.options.searches)

    @property
    def tries_lengths(self) -> bool:
        """Whether its hypotheses may differ in length."""
        return self.options is not None and (self.guided or self.options.hypotheses > 1)
