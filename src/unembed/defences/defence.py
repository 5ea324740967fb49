"""The defences of the web page's slider, how strong each can be, and the one function that applies them.

A strength goes from 0 to 1 for every kind; :attr:`Description.low` and :attr:`Description.high` say what that means in
the kind's own unit.
"""

import json
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Annotated, Literal

import numpy as np
from pydantic import BaseModel, ConfigDict, Field

from unembed.defences import transforms

Kind = Literal["none", "noise", "int8", "binary", "truncation", "rotation"]


class Defence(BaseModel):
    """A kind of defence and how strong it is; the same seed gives the same vectors."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    kind: Kind = Field(default="none", description="What is done to the vector.")
    strength: Annotated[float, Field(ge=0.0, le=1.0, description="0 for the least of this kind, 1 for the most.")] = 0.5
    seed: Annotated[int, Field(ge=0, lt=2**32, description="Of the noise, the choice or the rotation.")] = 0


@dataclass(frozen=True)
class Description:
    """What a kind of defence does, and what its strength means."""

    label: str
    explanation: str
    low: float
    """The physical parameter at strength 0."""
    high: float
    """The physical parameter at strength 1."""
    unit: str
    transform: Callable[[np.ndarray, float, int], np.ndarray]
    """Takes vectors (n, d), the physical parameter and the seed."""

    def parameter(self, strength: float) -> float:
        """Turn a strength into the physical parameter."""
        return self.low + strength * (self.high - self.low)


DEFENCES: dict[Kind, Description] = {
    "none": Description("None", "The vector as the encoder gives it.", 0.0, 0.0, "", transforms.keep),
    "noise": Description(
        "Gaussian noise",
        "Random numbers are added to the vector. The parameter is their length in units of the vector's own.",
        0.0,
        2.0,
        "of the vector's length",
        transforms.add_noise,
    ),
    "int8": Description(
        "Integers",
        "Each number is rounded to an integer of this many bits; 8 is what databases offer.",
        8.0,
        2.0,
        "bits",
        transforms.round_to_some_bits,
    ),
    "binary": Description(
        "Signs only",
        "Only the sign is kept of a share of the numbers; at full strength of all, as in a binary index.",
        0.0,
        1.0,
        "of the numbers",
        transforms.keep_signs,
    ),
    "truncation": Description(
        "Truncation",
        "The last numbers of the vector are dropped, here set to zero.",
        0.0,
        0.95,
        "of the numbers",
        transforms.truncate,
    ),
    "rotation": Description(
        "Secret rotation",
        "All vectors are turned by the same angle with a secret matrix: their distances stay, their meaning is hidden.",
        0.0,
        90.0,
        "degrees",
        transforms.rotate,
    ),
}
"""Every kind, in the order in which they are shown."""


@cache
def neighbours_kept() -> dict[Kind, list[float]]:
    """Return, for each kind, the share of a vector's ten nearest neighbours that a search still finds.

    At equal steps of the strength from 0 to 1, for 3,000 texts and all-MiniLM-L6-v2, by ``benchmarks/slider.py``.
    """
    shares: dict[Kind, list[float]] = json.loads(files(__package__).joinpath("slider.json").read_text(encoding="utf-8"))
    return shares


@dataclass(frozen=True)
class Leakage:
    """Share of the content words that blind attackers read, at equal steps of the strength from 0 to 1."""

    naive: list[float]
    """Inverts the vectors as they are."""
    adaptive: list[float]
    """Knows the defence, tries it on 1,500 texts of its own, and maps the vectors back. Of a rotation it knows as many
    stored vectors with their texts."""


@cache
def words_leaked() -> dict[Kind, Leakage]:
    """Return what attackers read, for each kind: of 34 private sentences, by ``benchmarks/slider.py``."""
    figures = json.loads(files(__package__).joinpath("leakage.json").read_text(encoding="utf-8"))
    return {kind: Leakage(**values) for kind, values in figures.items()}


def apply(vectors: np.ndarray, defence: Defence) -> np.ndarray:
    """Return defended copies of vectors (n, d): float32, of the same shape.

    What becomes of a vector does not depend on the others in the array.
    """
    description = DEFENCES[defence.kind]
    given = np.array(vectors, dtype=np.float32)
    defended = description.transform(given, description.parameter(defence.strength), defence.seed)
    return defended.astype(np.float32, copy=False)
