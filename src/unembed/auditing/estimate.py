"""How much was recovered where the texts are not known: as much as from known vectors with like signs.

The signs of a recovery are its cosine with the vector, the agreement of its hypotheses, its confidence, its length,
and what the vector itself says about the length and the language of its text. For each vector the known ones with the
nearest signs are looked up; what came back from these is expected to have come back from it. So every estimate is a
mean over known texts, and estimates never contradict each other.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from unembed.auditing.intervals import angle
from unembed.auditing.recover import Recovery

STEPS = 10
"""Into how many steps from 0 to 1 the distribution of recoveries is divided."""
_NEIGHBOURS = 20
# Of few known texts, no more than this share are neighbours.
_SHARE = 0.2
# A source may be stranger than all others. With this margin, intervals that are made without a source hold for it.
_MARGIN = 1.25
_BLOCK = 256


@dataclass(frozen=True)
class KnownRecoveries:
    """Recoveries of known texts of several kinds: their signs, and how much really came back."""

    kinds: Sequence[str]
    """The kind of each text. What stands before a hyphen is its source: a source is left out as a whole."""
    signs: np.ndarray
    """(m, s)"""
    values: Mapping[str, np.ndarray]
    """(m,) each: the measures, and what the method can see."""

    def __len__(self) -> int:
        return len(self.signs)

    def only(self, chosen: np.ndarray) -> "KnownRecoveries":
        """Return the part that a mask (m,) chooses."""
        kinds = [kind for kind, wanted in zip(self.kinds, chosen, strict=True) if wanted]
        return KnownRecoveries(kinds, self.signs[chosen], {name: all_[chosen] for name, all_ in self.values.items()})

    def without(self, source: str) -> "KnownRecoveries":
        """Return all but the kinds of one source."""
        return self.only(self.sources != source)

    @property
    def sources(self) -> np.ndarray:
        """(m,) where each text comes from."""
        return np.array([kind.partition("-")[0] for kind in self.kinds])

    def expect(self, signs: np.ndarray) -> dict[str, np.ndarray]:
        """Return the expected values (n,) of recoveries with some signs (n, s)."""
        nearest = self._nearest(signs)
        return {name: values[nearest].mean(1) for name, values in self.values.items()}

    def chances(self, signs: np.ndarray) -> np.ndarray:
        """Return the probabilities (n, STEPS) of each step of ``passage_recall``."""
        steps = np.eye(STEPS)[[step_of(value) for value in self.values["passage_recall"]]]
        chances: np.ndarray = steps[self._nearest(signs)].mean(1)
        return chances

    @cached_property
    def errors(self) -> dict[str, dict[str, float]]:
        """For each value, the error of the mean of each source when it is estimated from the other sources."""
        errors: dict[str, dict[str, float]] = {name: {} for name in self.values}
        for source in dict.fromkeys(self.sources):
            inside = self.sources == source
            if inside.all():
                continue
            expected = self.without(source).expect(self.signs[inside])
            for name, values in self.values.items():
                errors[name][source] = float(angle(expected[name].mean()) - angle(values[inside].mean()))
        return errors

    @property
    def widening(self) -> dict[str, float]:
        """By how much intervals are widened: so that they hold for every source that is left out, with a margin."""
        return {name: _MARGIN * max(map(abs, errors.values()), default=0.0) for name, errors in self.errors.items()}

    def _nearest(self, signs: np.ndarray) -> np.ndarray:
        """Return the indices (n, k) of the known recoveries with the nearest signs."""
        mean, spread = self.signs.mean(0), self.signs.std(0) + 1e-6
        known, ours = (self.signs - mean) / spread, (signs - mean) / spread
        count = max(1, min(_NEIGHBOURS, int(_SHARE * len(known))))
        found = [
            np.argsort(((part[:, None] - known) ** 2).sum(-1), axis=1, kind="stable")[:, :count]
            for part in (ours[start : start + _BLOCK] for start in range(0, len(ours), _BLOCK))
        ]
        return np.concatenate(found)


def signs_of(recoveries: Sequence[Recovery], clues: np.ndarray) -> np.ndarray:
    """Return the signs (n, s) of recoveries; ``clues`` (n, c) is what their vectors say."""
    own = [[each.cosine or 0.0, each.agreement, each.confidence, np.log(max(1, len(each.ids)))] for each in recoveries]
    return np.concatenate([np.array(own).reshape(len(recoveries), -1), clues], axis=1)


def step_of(value: float) -> int:
    """Return the step of a share from 0 to 1."""
    return min(STEPS - 1, int(value * STEPS + 1e-9))
