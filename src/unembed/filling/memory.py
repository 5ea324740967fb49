"""Vectors of filled templates, each embedded once. They do not depend on the vector that is searched for."""

from collections.abc import Callable, Sequence

import numpy as np

from unembed.filling.likelihood import Combination
from unembed.filling.steps import Steps
from unembed.filling.template import Template
from unembed.measures.vectors import normalise

Embed = Callable[[Sequence[str]], np.ndarray]
# Texts that are embedded before others have their turn: a fraction of a second.
_AT_ONCE = 128


class FilledVectors:
    """The vectors of combinations of candidates."""

    def __init__(self, template: Template, candidates: Sequence[Sequence[str]], embed: Embed) -> None:
        self.template = template
        self.candidates = [list(own) for own in candidates]
        """Of each slot; a search in free slots adds some."""
        self._places: list[dict[str, int]] | None = None
        self._embed = embed
        self._rows: dict[Combination, int] = {}
        self._vectors = np.empty((0, 0), dtype=np.float32)

    def __len__(self) -> int:
        return len(self._rows)

    def write(self, combination: Combination) -> str:
        """Return the text of a combination."""
        return self.template.fill(self.values(combination))

    def values(self, combination: Combination) -> list[str]:
        """Return what stands in each slot."""
        return [own[index] for own, index in zip(self.candidates, combination, strict=True)]

    def index(self, slot: int, value: str) -> int:
        """Return the index of a candidate of a slot; a new one is added to the others."""
        if self._places is None:
            self._places = [{each: place for place, each in enumerate(own)} for own in self.candidates]
        if value not in self._places[slot]:
            self._places[slot][value] = len(self.candidates[slot])
            self.candidates[slot].append(value)
        return self._places[slot][value]

    def missing(self, combinations: Sequence[Combination]) -> list[Combination]:
        """Return the combinations that were not embedded, each once."""
        return [each for each in dict.fromkeys(combinations) if each not in self._rows]

    def embed(self, combinations: Sequence[Combination]) -> np.ndarray:
        """Return the vectors (n, d) of combinations, at length one."""
        if missing := self.missing(combinations):
            new = normalise(self._embed([self.write(each) for each in missing]))
            first = len(self._rows)
            if first + len(new) > len(self._vectors):
                grown = np.empty((2 * (first + len(new)), new.shape[1]), dtype=np.float32)
                if first:
                    grown[:first] = self._vectors[:first]
                self._vectors = grown
            self._vectors[first : first + len(new)] = new
            self._rows |= {each: first + row for row, each in enumerate(missing)}
        return self._vectors[[self._rows[each] for each in combinations]]

    def embed_in_parts(self, combinations: Sequence[Combination]) -> Steps[np.ndarray]:
        """Return the same, with pauses."""
        missing = self.missing(combinations)
        for start in range(0, len(missing), _AT_ONCE):
            self.embed(missing[start : start + _AT_ONCE])
            yield
        return self.embed(combinations)

    def known_beside(self, parent: Combination, slot: int) -> np.ndarray:
        """Return the candidates of a slot that were embedded beside the others of a combination."""
        rest = (parent[:slot], parent[slot + 1 :])
        known = [each[slot] for each in self._rows if (each[:slot], each[slot + 1 :]) == rest]
        return np.array(sorted(known), dtype=np.int64)

    def cosines(self, target: np.ndarray) -> dict[Combination, float]:
        """Return the cosine of everything that was embedded with a vector of length one."""
        values = self._vectors[: len(self._rows)] @ target
        return dict(zip(self._rows, values.tolist(), strict=True))
