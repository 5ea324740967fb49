"""How vectors, steps and inversions are shown to a client. Knows schemas, no HTTP."""

from collections.abc import Sequence

import numpy as np

from unembed.canvas import RoundTrip
from unembed.decoding import Step
from unembed.measures import Forms, compare_one
from unembed.server.models import ServedModel
from unembed.server.schemas import CanvasToken, Histogram, Reference, Statistics, StepShown

_BINS = 32


def describe_vector(vector: np.ndarray) -> Statistics:
    """Return what can be seen of a vector (d,) at a glance."""
    exact = vector.astype(np.float64)
    counts, edges = np.histogram(exact, bins=_BINS)
    shares = counts[counts > 0] / len(exact)
    return Statistics(
        dimension=len(exact),
        norm=float(np.linalg.norm(exact)),
        minimum=float(exact.min()),
        maximum=float(exact.max()),
        mean=float(exact.mean()),
        entropy=float(abs((shares * np.log2(shares)).sum())),
        histogram=Histogram(edges=edges.tolist(), counts=counts.tolist()),
    )


def describe_reference(trip: RoundTrip | None, model: ServedModel) -> Reference | None:
    """Return the text that was embedded, if one was."""
    if trip is None:
        return None
    return Reference(text=trip.embedded, tokens=model.token_names(trip.ids), cut=trip.cut, notices=model.notices(trip))


def measure(recovered: Sequence[int], trip: RoundTrip | None) -> dict[str, float] | None:
    """Compare recovered tokens with those of the text that was embedded, if one was."""
    return None if trip is None else compare_one(Forms([recovered]), Forms([trip.ids]))


def show_step(step: Step, index: int, model: ServedModel) -> StepShown:
    """Return one hypothesis after a pass."""
    canvas = step.canvas[index].tolist()
    mask, size = model.inverter.info.vocabulary.mask, model.inverter.info.vocabulary.size
    rate = float(step.mask_rate[index])
    return StepShown(
        number=int(step.passes[index]),
        mask_rate=rate,
        score=float(step.score[index]) if rate == 0.0 else None,
        texts_embedded=int(step.texts_embedded[index]),
        tokens=[
            CanvasToken(
                text=model.marks.bare(name),
                joined=token < size and model.marks.continues(name),
                masked=token == mask,
                changed=changed,
                confidence=confidence,
            )
            for name, token, changed, confidence in zip(
                model.token_names(canvas),
                canvas,
                step.changed[index].tolist(),
                step.confidence[index].tolist(),
                strict=True,
            )
        ],
    )
