"""From texts or vectors to inversions and their measures. Knows nothing of files or of display."""

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from unembed.canvas import RoundTrip

if TYPE_CHECKING:
    import numpy as np

    from unembed.cli.animation import Painter
    from unembed.config import DecodingConfig
    from unembed.connectors import VectorBatch
    from unembed.connectors.source import Id
    from unembed.decoding import Step
    from unembed.encoders import Encoder
    from unembed.inverter import Inversion, Inverter


@dataclass(frozen=True)
class InputBatch:
    """Vectors that are inverted together."""

    vectors: "np.ndarray"
    trips: list[RoundTrip] = field(default_factory=list)
    """The texts of the vectors; empty if only vectors were given."""
    ids: "Sequence[Id] | None" = None
    """What the source calls the vectors, if they come from one."""
    stored: "Sequence[str | None] | None" = None
    """The texts that the source holds, if it does."""

    @classmethod
    def of(cls, batch: "VectorBatch") -> "InputBatch":
        """Take rows of a source."""
        return cls(batch.vectors, ids=batch.ids, stored=batch.texts)

    def split(self) -> "Iterator[InputBatch]":
        """Yield each vector by itself."""
        for row in range(len(self.vectors)):
            part = slice(row, row + 1)
            yield InputBatch(
                self.vectors[part],
                self.trips[part],
                None if self.ids is None else self.ids[part],
                None if self.stored is None else self.stored[part],
            )


@dataclass(frozen=True)
class InvertedText:
    """The result of one vector."""

    row: int
    inversion: "Inversion"
    trip: RoundTrip | None
    measures: dict[str, float]
    """How the recovered text compares with the one that was embedded, if one was."""
    trace: list[dict[str, Any]]
    """Every pass, if the trace was asked for."""
    id: "Id | None" = None
    """What the source calls the vector, if it comes from one."""
    stored: str | None = None
    """The text that the source holds for it."""


@dataclass(frozen=True)
class InversionJob:
    """Everything that decides how vectors are inverted."""

    inverter: "Inverter"
    options: "DecodingConfig"
    painter: "Painter"
    encoder: "Encoder | None"
    length: int | None
    batch_size: int
    trace: bool
    interrupted: "Callable[[], bool]" = lambda: False
    """Whether the user has asked to end early: a search with the best texts so far, other work with what is done."""
    first_row: int = 0
    """The number of the first vector, if those before it were done in an earlier run."""

    def embed(self, texts: list[str]) -> Iterator[InputBatch]:
        """Embed texts, cut to what a canvas holds."""
        assert self.encoder is not None
        if texts:
            trips, vectors = self.inverter.round_trip(texts, self.encoder, strategy=self.options.strategy)
            yield InputBatch(vectors, trips)

    def run(
        self, batches: "Iterable[InputBatch]", watch: "Callable[[Step], None] | None" = None
    ) -> Iterator[InvertedText]:
        """Invert batches; yield each result as soon as it and all before it are finished."""
        start = self.first_row
        for batch in batches:
            finished: dict[int, Inversion] = {}
            traces: defaultdict[int, list[dict[str, Any]]] = defaultdict(list)
            row = 0
            for step in self.inverter.decode(
                batch.vectors,
                self.options,
                lengths=None if self.length is None else [self.length] * len(batch.vectors),
                encoder=self.encoder,
                batch_size=self.batch_size,
                interrupted=self.interrupted,
            ):
                if self.interrupted() and not self.options.searches:
                    return
                if watch:
                    watch(step)
                if self.trace:
                    for index, number in enumerate(step.rows.tolist()):
                        traces[number].append(_describe(step, index, self.painter))
                finished |= self.inverter.read(step, self.options)
                while row in finished:
                    trip = batch.trips[row] if batch.trips else None
                    inversion = finished.pop(row)
                    measures = self._compare(inversion, trip, batch.vectors[row]) if trip else {}
                    yield InvertedText(
                        start + row,
                        inversion,
                        trip,
                        measures,
                        traces.pop(row, []),
                        None if batch.ids is None else batch.ids[row],
                        None if batch.stored is None else batch.stored[row],
                    )
                    row += 1
            start += len(batch.vectors)
            if self.interrupted():
                return

    def _compare(self, inversion: "Inversion", trip: RoundTrip, vector: "np.ndarray") -> dict[str, float]:
        from unembed.measures import Forms, compare_one

        assert self.encoder is not None
        recovered = Forms([inversion.ids], [inversion.text], self.encoder.encode([inversion.text]))
        return compare_one(recovered, Forms([trip.ids], [trip.embedded], vector[None]))


def _describe(step: "Step", index: int, painter: "Painter") -> dict[str, Any]:
    """Return one hypothesis after one pass, as it is written to JSON."""
    return {
        "pass": int(step.passes[index]),
        "candidate": int(step.candidate[index]),
        "mask_rate": float(step.mask_rate[index]),
        "tokens": painter.tokens(step.canvas[index].tolist()),
        "changed": step.changed[index].nonzero()[:, 0].tolist(),
        "confidences": step.confidence[index].tolist(),
        "score": float(step.score[index]),
        "texts_embedded": int(step.texts_embedded[index]),
    }
