"""Engines around another engine: all that they do not change is done by the one inside."""

from typing import Any

from torch import Tensor

from unembed.alignment import SpaceMap
from unembed.engine.base import Engine
from unembed.model import Choice, Writing
from unembed.model.candidates import Candidates


class WrappedEngine:
    """An :class:`~unembed.engine.Engine` that does what the engine inside does."""

    def __init__(self, engine: Engine) -> None:
        self.inside = engine
        self.config, self.vocabulary = engine.config, engine.vocabulary

    def condition(self, embeddings: Tensor, dropped: Tensor | None = None, candidates: Candidates | None = None) -> Any:
        """Read all that the passes need off the vectors."""
        return self.inside.condition(embeddings, dropped, candidates)

    def shorten(self, condition: Any) -> Any:
        """Return a condition with which :meth:`likeliest` may leave out unlikely tokens."""
        return self.inside.shorten(condition)

    def hidden(self, canvas: Tensor, condition: Any, time: Tensor | None = None, where: Tensor | None = None) -> Tensor:
        """Run the transformer over canvases (B, T)."""
        return self.inside.hidden(canvas, condition, time, where)

    def logits(self, hidden: Tensor, where: Tensor, canvas: Tensor, condition: Any) -> Tensor:
        """Score tokens at the positions that ``where`` marks."""
        return self.inside.logits(hidden, where, canvas, condition)

    def likeliest(
        self, hidden: Tensor, where: Tensor, canvas: Tensor, condition: Any, *, with_entropy: bool = False
    ) -> Choice:
        """Choose the likeliest token at each of these positions."""
        return self.inside.likeliest(hidden, where, canvas, condition, with_entropy=with_entropy)

    def length_logits(self, embeddings: Tensor) -> Tensor:
        """Score text lengths."""
        return self.inside.length_logits(embeddings)

    @property
    def writes(self) -> bool:
        """Whether there is a writer that has learnt something."""
        return self.inside.writes

    def writing(self, embeddings: Tensor) -> Writing | None:
        """Return what writing from left to right needs of vectors, if there is a writer."""
        return self.inside.writing(embeddings)

    def resemblance(self, canvas: Tensor, embeddings: Tensor) -> Tensor | None:
        """Return how near finished canvases come to their vectors by the surrogate, if there is one."""
        return self.inside.resemblance(canvas, embeddings)


class MappedEngine(WrappedEngine):
    """Is given vectors of one encoder; the engine inside works with those of another."""

    def __init__(self, engine: Engine, space_map: SpaceMap) -> None:
        super().__init__(engine)
        self.space_map = space_map

    def condition(self, embeddings: Tensor, dropped: Tensor | None = None, candidates: Candidates | None = None) -> Any:
        """Read all that the passes need off the mapped vectors."""
        return self.inside.condition(self.space_map(embeddings), dropped, candidates)

    def length_logits(self, embeddings: Tensor) -> Tensor:
        """Score text lengths, given the mapped vectors."""
        return self.inside.length_logits(self.space_map(embeddings))

    def writing(self, embeddings: Tensor) -> Writing | None:
        """Return what writing needs of the mapped vectors, if there is a writer."""
        return self.inside.writing(self.space_map(embeddings))

    def resemblance(self, canvas: Tensor, embeddings: Tensor) -> Tensor | None:
        """Return how near finished canvases come to the mapped vectors."""
        return self.inside.resemblance(canvas, self.space_map(embeddings))
