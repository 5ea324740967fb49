"""Known texts that estimates rest on: those stored with the package, or a user's own. Knows how they are kept.

``benchmarks/calibration.py`` makes the stored file, for the default inverter.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from hashlib import blake2b
from importlib.resources import files
from typing import Any

import numpy as np

from unembed.auditing.estimate import KnownRecoveries
from unembed.checkpoint import CheckpointInfo

STORED = "calibration.json"
_DIGITS = 4


@dataclass(frozen=True)
class Clues:
    """What vectors say about their texts by themselves: straight lines through their numbers."""

    weights: np.ndarray
    """(d + 1, c), the last row is the offset."""

    @classmethod
    def none(cls, dim: int) -> "Clues":
        """Return clues that say nothing."""
        return cls(np.zeros((dim + 1, 0)))

    @classmethod
    def fit(cls, vectors: np.ndarray, targets: np.ndarray, ridge: float) -> "Clues":
        """Fit lines to targets (m, c) of known vectors (m, d), of any norm."""
        inputs = _with_one(vectors)
        penalty = ridge * np.diag([1.0] * vectors.shape[1] + [0.0])
        weights: np.ndarray = np.linalg.solve(inputs.T @ inputs + penalty, inputs.T @ targets)
        return cls(weights)

    def read(self, vectors: np.ndarray) -> np.ndarray:
        """Return the clues (n, c) of vectors (n, d)."""
        clues: np.ndarray = _with_one(vectors) @ self.weights
        return clues


@dataclass(frozen=True)
class Calibration:
    """Known recoveries of the blind attacker, and the clues that go with them."""

    name: str
    """Where the texts come from."""
    clues: Clues
    known: KnownRecoveries
    inverter: str
    """Whose recoveries these are: see :func:`identity_of`."""
    words: Sequence[Mapping[str, Any]] = ()
    """How far ``unembed words`` can be trusted, by length: the fields of :class:`~unembed.auditing.finding.Trust`."""
    like_yours: bool = True
    """Whether the texts are like those that are audited: of many kinds, or as their user says."""

    @property
    def widening(self) -> dict[str, float]:
        """By how much the intervals of each value are widened."""
        own = self.known.widening
        if self.like_yours:
            return own
        stored = load_stored().known.widening
        return {name: max(each, stored[name]) for name, each in own.items()}

    def to_json(self) -> dict[str, Any]:
        """Return plain values, rounded."""
        return {
            "name": self.name,
            "inverter": self.inverter,
            "clues": _rounded(self.clues.weights.T),
            "known": {
                "kinds": list(self.known.kinds),
                "signs": _rounded(self.known.signs.T),
                "values": {name: _rounded(values) for name, values in self.known.values.items()},
            },
            "words": list(self.words),
        }

    @classmethod
    def from_json(cls, stored: Mapping[str, Any]) -> "Calibration":
        """Read what :meth:`to_json` gave."""
        known = stored["known"]
        return cls(
            name=stored["name"],
            inverter=stored["inverter"],
            clues=Clues(np.array(stored["clues"]).T),
            known=KnownRecoveries(
                known["kinds"],
                np.array(known["signs"]).T,
                {name: np.array(values) for name, values in known["values"].items()},
            ),
            words=stored["words"],
        )


@cache
def load_stored() -> Calibration:
    """Return the calibration that comes with the package."""
    return Calibration.from_json(json.loads(files(__package__).joinpath(STORED).read_text(encoding="utf-8")))


def stored_for(info: CheckpointInfo) -> Calibration | None:
    """Return the calibration that comes with the package, if it was made with this inverter."""
    stored = load_stored()
    return stored if stored.inverter == identity_of(info) else None


def identity_of(info: CheckpointInfo) -> str:
    """Return a short name for a trained inverter, which another one does not have.

    What does not change the texts that it writes is left out. So an inverter without a writer has the name that it had
    before there were writers.
    """
    unimportant = {"extent"} if info.model.writer.layers else {"extent", "writer"}
    described = info.model_dump_json(exclude={"unembed_version": True, "languages": True, "model": unimportant})
    return blake2b(described.encode(), digest_size=8).hexdigest()


def _with_one(vectors: np.ndarray) -> np.ndarray:
    directions = vectors / np.maximum(np.linalg.norm(vectors, axis=1, keepdims=True), 1e-12)
    return np.concatenate([directions, np.ones((len(vectors), 1))], axis=1)


def _rounded(values: np.ndarray) -> list[Any]:
    rounded: list[Any] = np.round(np.asarray(values, dtype=np.float64), _DIGITS).tolist()
    return rounded
