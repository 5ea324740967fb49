"""Several transforms one after the other, typed as one string: ``truncate:256,int8``. Knows no files."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import reduce
from itertools import takewhile

import numpy as np

from unembed.defences.dimensions import PrincipalComponents, Truncation
from unembed.defences.learned import LearnedMap
from unembed.defences.mixing import Mixing
from unembed.defences.noise import FreshNoise, Laplace, Noise
from unembed.defences.rotations import CellRotation, Rotation
from unembed.defences.rounding import Binary, Integers, ProductQuantisation
from unembed.defences.transform import Layout, Transform
from unembed.errors import ConfigError, VectorError, did_you_mean
from unembed.measures.vectors import normalise

TRANSFORMS: dict[str, type[Transform]] = {
    kind.name: kind
    for kind in (
        *(Noise, FreshNoise, Laplace, Mixing),
        *(Integers, Binary, ProductQuantisation),
        *(Truncation, PrincipalComponents, LearnedMap),
        *(Rotation, CellRotation),
    )
}
"""Every transform by the name that is typed; ``int`` is typed with its bits: ``int8``."""
_INTEGERS = re.compile(r"int(\d+)")
_DIFFERENT = 1e-5


@dataclass(frozen=True)
class ChainStep:
    """One transform that is wanted, and its value."""

    kind: type[Transform]
    value: float

    def __str__(self) -> str:
        if self.kind is Integers:
            return f"{self.kind.name}{self.value:g}"
        return f"{self.kind.name}:{self.value:g}" if self.kind.meaning else self.kind.name


def parse_chain(text: str) -> list[ChainStep]:
    """Read ``truncate:256,int8``: names with their values, in the order in which they are applied.

    Raises:
        ConfigError: a name or a value that cannot be.
    """
    steps = [_parse_step(part.strip()) for part in text.split(",") if part.strip()]
    if not steps:
        raise ConfigError("The chain of defences is empty.", "Give one, for example: truncate:256,int8")
    return steps


def _parse_step(part: str) -> ChainStep:
    name, colon, typed = part.partition(":")
    if bits := _INTEGERS.fullmatch(name):
        name, colon, typed = Integers.name, ":", bits[1]
    kind = TRANSFORMS.get(name)
    if kind is None:
        names = [name if name != Integers.name else "int8" for name in TRANSFORMS]
        raise ConfigError(f"There is no defence '{name}': {did_you_mean(name, names)}", "Check its name.")
    if not colon and kind.default is not None:
        return ChainStep(kind, kind.default)
    if colon and not kind.meaning:
        raise ConfigError(f"The defence '{name}' takes no value.", f"Write {name}.")
    try:
        return ChainStep(kind, float(typed))
    except ValueError as error:
        raise ConfigError(
            f"The defence '{part}' has no value that is a number.", f"Write {name}:VALUE. Its value: {kind.meaning}."
        ) from error


def check_chain(steps: Sequence[ChainStep], dim: int) -> None:
    """Raise if a value cannot be for vectors of ``dim`` numbers."""
    for step in steps:
        if problem := step.kind.problem_with(step.value, dim):
            raise ConfigError(f"{step}: {problem}.", "Change the chain of defences.")
        dim = round(step.value) if step.kind.narrows else dim


def describe_chain(steps: Sequence[ChainStep]) -> str:
    """Write a chain as it is typed."""
    return ",".join(map(str, steps))


@dataclass(frozen=True)
class Chain:
    """Transforms that were fitted to a collection, in order."""

    transforms: tuple[Transform, ...]
    dim: int
    """Of the vectors that it takes."""

    @classmethod
    def fit(cls, steps: Sequence[ChainStep], vectors: np.ndarray, *, seed: int | None = None) -> "Chain":
        """Fit each transform to what the ones before it give.

        Args:
            steps: what is wanted.
            vectors: (n, d) of the collection.
            seed: of keys, noise and clusters. Leave it out for real use: the system then gives a secret one.
        """
        vectors = np.asarray(vectors, dtype=np.float32)
        dim = vectors.shape[1]
        generator = np.random.default_rng(seed)
        check_chain(steps, dim)
        transforms: list[Transform] = []
        for number, step in enumerate(steps):
            transforms.append(step.kind.fit(step.value, vectors, generator))
            if number < len(steps) - 1:
                vectors = transforms[-1].apply(vectors)
        return cls(tuple(transforms), dim)

    def __str__(self) -> str:
        return describe_chain([ChainStep(type(transform), transform.value) for transform in self.transforms])

    @property
    def keyed(self) -> bool:
        """Whether it has a key, with which it can be undone."""
        return any(transform.knowledge == "secret" for transform in self.transforms)

    @property
    def fresh(self) -> bool:
        """Whether each release of the same vectors looks different, so that several can be averaged."""
        return any(transform.fresh for transform in self.transforms)

    @property
    def layout(self) -> Layout:
        """How defended vectors are stored."""
        return reduce(lambda before, transform: transform.layout(before), self.transforms, Layout(self.dim))

    @property
    def bytes_per_vector(self) -> int:
        """Storage of one defended vector."""
        return self.layout.bytes

    def apply(self, vectors: np.ndarray, *, release: int = 0) -> np.ndarray:
        """Return defended copies of vectors (n, d): float32 (n, k)."""
        vectors = self._check(vectors)
        for transform in self.transforms:
            vectors = transform.apply(vectors, release)
        return np.asarray(vectors, dtype=np.float32)

    def queries(self, vectors: np.ndarray) -> np.ndarray:
        """Return what is compared with defended vectors in a search: (n, p, k); of p forms the nearest counts."""
        forms = self._check(vectors)[:, None]
        for transform in self.transforms:
            flat = transform.queries(forms.reshape(-1, forms.shape[2]))
            forms = flat.reshape(len(forms), -1, flat.shape[2])
        return forms

    def undo(self, vectors: np.ndarray) -> np.ndarray:
        """Return vectors as they were before the first keyed transform, as exactly as the others allow."""
        return self._back(vectors, len(self.before_key().transforms))

    def before_key(self) -> "Chain":
        """Return the transforms before the first keyed one; all of them, if there is none."""
        return Chain(tuple(takewhile(lambda each: each.knowledge != "secret", self.transforms)), self.dim)

    def lift(self, vectors: np.ndarray) -> np.ndarray:
        """Return vectors in the encoder's own dimension, as somebody would who has the key."""
        return self._back(vectors, 0)

    def lift_without_key(self, vectors: np.ndarray) -> np.ndarray:
        """Return vectors in the encoder's own dimension, as somebody would who knows what is public."""
        for transform in reversed(self.transforms):
            if transform.knowledge != "secret":
                vectors = transform.undo(vectors)
        return vectors

    def forget_fresh_noise(self) -> "Chain":
        """Return the chain without the seeds of noise that was added: whoever has those can subtract it."""
        generator = np.random.default_rng()
        kept = (transform.redraw(generator) if transform.fresh else transform for transform in self.transforms)
        return Chain(tuple(kept), self.dim)

    def imitation(self, seed: int) -> "Chain":
        """Return the chain as an attacker can imitate it: of the same kind, with random numbers of his own."""
        generator = np.random.default_rng(seed)
        return Chain(tuple(transform.redraw(generator) for transform in self.transforms), self.dim)

    def known_part(self, vectors: np.ndarray) -> np.ndarray:
        """Apply the public transforms alone: what an attacker can say about the defended form of his own vectors."""
        vectors = self._check(vectors)
        for transform in self.transforms:
            if transform.knowledge == "public":
                vectors = transform.apply(vectors)
        return vectors

    def _back(self, vectors: np.ndarray, first: int) -> np.ndarray:
        vectors = np.asarray(vectors, dtype=np.float32)
        for transform in reversed(self.transforms[first:]):
            vectors = transform.undo(vectors)
        return vectors

    def _check(self, vectors: np.ndarray) -> np.ndarray:
        vectors = np.array(vectors, dtype=np.float32)
        if vectors.ndim != 2 or vectors.shape[1] != self.dim:
            raise VectorError(
                f"The vectors have the shape {vectors.shape}; this chain takes {self.dim} numbers each.",
                "Give the vectors that it was made for.",
            )
        return vectors


def count_different(vectors: np.ndarray) -> int:
    """Count the different directions of vectors (n, d), up to rounding."""
    return len(np.unique(np.round(normalise(vectors) / _DIFFERENT).astype(np.int64), axis=0))


def refuse_useless(chain: Chain, before: np.ndarray, after: np.ndarray) -> None:
    """Raise if a chain makes all vectors equal that were not."""
    if count_different(after) == 1 and count_different(before) > 1:
        raise ConfigError(
            f"The chain '{chain}' makes all {len(after):,} vectors equal. No search could tell them apart.",
            "Choose a weaker one.",
        )
