"""One pass of a decoder, as everything that shows or measures decoding sees it."""

from dataclasses import dataclass

from torch import Tensor


@dataclass(frozen=True)
class Step:
    """The state of some hypotheses after a pass. All tensors are on the CPU and belong to the receiver.

    A vector may have several hypotheses (``candidates``: other lengths, other random draws). Each vector has exactly
    one step in which it is ``final``; that one shows the hypothesis that was kept.
    """

    rows: Tensor
    """(B,) which vectors these are."""
    candidate: Tensor
    """(B,) which hypothesis of its vector each is, from 0."""
    canvas: Tensor
    """(B, T) token ids, [MASK] where nothing is revealed yet."""
    changed: Tensor
    """(B, T) which positions this pass changed."""
    confidence: Tensor
    """(B, T) probability of each revealed token when it was revealed, 0 where masked."""
    mask_rate: Tensor
    """(B,) share of the positions that are masked."""
    passes: Tensor
    """(B,) passes of the denoiser over these canvases so far."""
    score: Tensor
    """(B,) what hypotheses of one vector are compared by: the model's own score, or the cosine when guided."""
    final: Tensor
    """(B,) whether the vector is finished and this is its result."""
    encoder_calls: Tensor
    """(B,) texts embedded for these vectors so far; 0 when blind."""
