"""Sequential decoding, then Euler refinement started from that hypothesis (the paper's two-stage decoding)."""

from collections.abc import Iterator

import torch

from unembed.decoding.canvases import Canvases
from unembed.decoding.euler import euler_step, time_steps
from unembed.decoding.euler_remask import least_confident
from unembed.decoding.sequential import left_to_right
from unembed.decoding.step import Step


def two_stage(canvases: Canvases) -> Iterator[Step]:
    """Decode left to right; mask the least confident ``refine_share`` again; go on from the time of that share."""
    options = canvases.options
    for changed in left_to_right(canvases):
        yield canvases.emit(changed, final=False)
    before = canvases.canvas
    canvases.mask(least_confident(canvases.confidence, ~canvases.masked, options.refine_share))
    start = float(canvases.noise.time_of(torch.tensor(options.refine_share)))
    for time, then in time_steps(start, options.steps):
        if not len(canvases):
            return
        euler_step(canvases, time, then)
        changed, kept = canvases.canvas != before, canvases.masked.any(1)
        before = canvases.canvas[kept]
        yield canvases.emit(changed, final=~kept)
