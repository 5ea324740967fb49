"""What decoding needs of a denoiser. :class:`~unembed.model.ConditionalMDLM` is one; an exported graph is another."""

from typing import Any, Protocol, Self

from torch import Tensor

from unembed.canvas import CanvasVocabulary
from unembed.config import ModelConfig
from unembed.model import Choice, Writing
from unembed.model.candidates import Candidates


class Condition(Protocol):
    """What a batch of vectors says; computed once, used in every pass."""

    @property
    def offsets(self) -> Tensor:
        """(B, outputs): what the vectors say about each token before any pass. Or (B, C), of C candidates."""
        ...

    def rows(self, index: Tensor) -> Self:
        """Return the condition of some rows."""
        ...

    def coverage(self, canvas: Tensor) -> Tensor:
        """Return how much of the probability that the vectors alone give to tokens (B,) stands on canvases (B, T)."""
        ...

    def damped(self, strength: float) -> Self:
        """Return the same, with tokens on the canvas held back this strongly relative to what training found best."""
        ...

    @property
    def choices(self) -> int:
        """How many tokens :meth:`Engine.likeliest` chooses from."""
        ...


class Engine(Protocol):
    """Runs the denoiser. The methods are those of :class:`~unembed.model.ConditionalMDLM`."""

    config: ModelConfig
    vocabulary: CanvasVocabulary

    def condition(self, embeddings: Tensor, dropped: Tensor | None = None, candidates: Candidates | None = None) -> Any:
        """Read all that the passes need off the vectors (B, d); ``dropped`` rows are treated as having none.

        With ``candidates``, the logits are those of these C tokens only.
        """
        ...

    def shorten(self, condition: Any) -> Any:
        """Return a condition with which :meth:`likeliest` may leave out unlikely tokens, if that is faster."""
        ...

    def hidden(self, canvas: Tensor, condition: Any, time: Tensor | None = None, where: Tensor | None = None) -> Tensor:
        """Run the transformer over canvases (B, T); ``where`` (B, T) may say which positions' states matter."""
        ...

    def logits(self, hidden: Tensor, where: Tensor, canvas: Tensor, condition: Any) -> Tensor:
        """Score tokens at the M positions that ``where`` (B, T) marks: (M, outputs) or (M, C)."""
        ...

    def likeliest(
        self, hidden: Tensor, where: Tensor, canvas: Tensor, condition: Any, *, with_entropy: bool = False
    ) -> Choice:
        """Choose the likeliest token at each of these positions: what most strategies need of the logits."""
        ...

    def length_logits(self, embeddings: Tensor) -> Tensor:
        """Score text lengths 1 ... canvas_length."""
        ...

    @property
    def writes(self) -> bool:
        """Whether there is a writer that has learnt something."""
        ...

    def writing(self, embeddings: Tensor) -> Writing | None:
        """Return what writing from left to right needs of vectors (B, d), if there is a writer."""
        ...

    def resemblance(self, canvas: Tensor, embeddings: Tensor) -> Tensor | None:
        """Return how near finished canvases (B, T) come to their vectors (B, d) by the surrogate, if there is one."""
        ...
