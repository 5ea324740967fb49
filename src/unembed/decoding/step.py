"""One pass of a decoder, as everything that shows or measures decoding sees it."""

from dataclasses import dataclass

from torch import Tensor


@dataclass(frozen=True)
class Step:
    """The state of some rows after a pass. All tensors are on the CPU and belong to the receiver."""

    rows: Tensor
    """(B,) which vectors these are."""
    canvas: Tensor
    """(B, T) token ids, [MASK] where nothing is revealed yet."""
    changed: Tensor
    """(B, T) which positions this pass changed."""
    confidence: Tensor
    """(B, T) probability of each revealed token when it was revealed, 0 where masked."""
    mask_rate: float
    passes: int
    """Forward passes so far."""
    final: bool
    """Whether these rows are finished."""
