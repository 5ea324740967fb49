"""One pass of a decoder, as everything that shows or measures decoding sees it."""

import math
from dataclasses import dataclass

from torch import Tensor

from unembed.canvas import CanvasVocabulary

_SMALLEST = 1e-9


@dataclass(frozen=True)
class DecodedText:
    """A hypothesis without masks, read off its canvas."""

    row: int
    """Which vector it belongs to."""
    candidate: int
    ids: list[int]
    """The tokens of the text: nothing from [EOS] on."""
    confidences: list[float]
    """Probability of each of them when it was revealed."""
    passes: int
    score: float
    texts_embedded: int
    final: bool
    """Whether this is the result for its vector."""

    @property
    def fluency(self) -> float:
        """Mean log-probability of its tokens when they were revealed."""
        return sum(math.log(max(each, _SMALLEST)) for each in self.confidences) / max(1, len(self.confidences))


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
    """(B,) what hypotheses of one vector are compared by: the model's own score, or the cosine in a search."""
    final: Tensor
    """(B,) whether the vector is finished and this is its result."""
    texts_embedded: Tensor
    """(B,) texts embedded for these vectors so far, by the encoder or by its surrogate; 0 when by neither."""

    def finished(self, vocabulary: CanvasVocabulary) -> list[DecodedText]:
        """Read the results: the texts of the vectors that this step finishes."""
        return [text for text in self.complete(vocabulary) if text.final]

    def complete(self, vocabulary: CanvasVocabulary) -> list[DecodedText]:
        """Read every hypothesis that has no mask left, whether or not it will be kept."""
        return [self._read(index, vocabulary) for index in (self.mask_rate == 0.0).nonzero()[:, 0].tolist()]

    def only(self, index: int) -> "Step":
        """Return the part of this step that is about one of its hypotheses."""
        part = slice(index, index + 1)
        return Step(**{name: value[part] for name, value in vars(self).items()})

    def _read(self, index: int, vocabulary: CanvasVocabulary) -> DecodedText:
        ids = vocabulary.text_ids(self.canvas[index].tolist())
        return DecodedText(
            row=int(self.rows[index]),
            candidate=int(self.candidate[index]),
            ids=ids,
            confidences=self.confidence[index, : len(ids)].tolist(),
            passes=int(self.passes[index]),
            score=float(self.score[index]),
            texts_embedded=int(self.texts_embedded[index]),
            final=bool(self.final[index]),
        )
