"""Sums, differences and means of vectors before they are inverted. Knows nothing of how they are inverted."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from unembed.cli.inputs import open_input
from unembed.cli.job import InputBatch
from unembed.errors import ConfigError, VectorError
from unembed.measures.vectors import normalise

if TYPE_CHECKING:
    from unembed.connectors import VectorSource
    from unembed.encoders import Encoder

_BATCH = 4096
# A sum is zero if it is this much shorter than its parts: what is left is rounding.
_NOTHING = 1e-5


@dataclass(frozen=True)
class Operand:
    """Vectors that are added to others, or taken from them."""

    name: str
    sign: int
    source: "list[str] | VectorSource"
    """Texts, or where the vectors are."""

    def read(self, dim: int, encoder: "Encoder | None") -> np.ndarray:
        """Return the signed vectors (n, d), each of length one."""
        if isinstance(self.source, list):
            assert encoder is not None
            vectors = encoder.encode(self.source)
        else:
            batches = [batch.vectors for batch in self.source.checked]
            vectors = np.concatenate(batches) if batches else np.empty((0, dim), dtype=np.float32)
        if not len(vectors):
            raise VectorError(f"{self.name} holds no vectors.", "Give one vector, or one for each of the others.")
        if vectors.shape[1] != dim:
            raise VectorError(
                f"{self.name} holds vectors of {vectors.shape[1]} numbers; the others have {dim}.",
                "Give vectors of the same encoder.",
            )
        return self.sign * normalise(vectors)


@dataclass(frozen=True)
class Arithmetic:
    """What is computed with vectors before they are inverted."""

    operands: list[Operand]
    mean: bool
    """Whether only the mean of all sums is wanted."""

    @property
    def needs_encoder(self) -> bool:
        """Whether texts take part."""
        return any(isinstance(operand.source, list) for operand in self.operands)

    def apply(self, batches: Iterable[InputBatch], encoder: "Encoder | None") -> Iterator[InputBatch]:
        """Yield the sums of each batch, or their mean.

        All vectors are scaled to length one first. An operand of one vector is added to every row, one of several to
        the row of the same number.
        """
        others: list[np.ndarray] | None = None
        rows, total = 0, np.zeros(())
        for batch in batches:
            if others is None:
                others = [operand.read(batch.vectors.shape[1], encoder) for operand in self.operands]
            sums = normalise(batch.vectors).astype(np.float64)
            for operand, other in zip(self.operands, others, strict=True):
                if len(other) > 1 and rows + len(sums) > len(other):
                    raise _uneven(operand, len(other), f"at least {rows + len(sums):,}")
                sums = sums + (other if len(other) == 1 else other[rows : rows + len(sums)])
            if self.mean:
                total = total + sums.sum(0)
            else:
                ids = batch.ids or [trip.embedded for trip in batch.trips]
                yield InputBatch(_refuse_zero(sums, rows), ids=ids)
            rows += len(sums)
        for operand, other in zip(self.operands, others or [], strict=False):
            if len(other) > 1 and rows != len(other):
                raise _uneven(operand, len(other), f"{rows:,}")
        if self.mean and rows:
            yield InputBatch(_refuse_zero(total[None] / rows, 0), ids=[f"mean of {rows:,}"])


def open_arithmetic(plus: Sequence[str], minus: Sequence[str], *, mean: bool, resume: bool) -> Arithmetic | None:
    """Open what is added and what is taken away: files, databases or texts. None if there is nothing to compute."""
    if not (plus or minus or mean):
        return None
    if resume:
        raise ConfigError(
            "Sums and means cannot be continued.", "Leave out --resume, and write to a new file: --output FILE."
        )
    signed = [(1, name) for name in plus] + [(-1, name) for name in minus]
    return Arithmetic(
        [Operand(name, sign, open_input([name], (None, None, None), None, _BATCH)) for sign, name in signed], mean
    )


def _uneven(operand: Operand, has: int, needed: str) -> VectorError:
    return VectorError(
        f"{operand.name} holds {has:,} vectors, but there are {needed} to combine them with.",
        "Give one vector, or one for each of the others.",
    )


def _refuse_zero(sums: np.ndarray, first: int) -> np.ndarray:
    short = np.flatnonzero(np.linalg.norm(sums, axis=1) < _NOTHING)
    if len(short):
        raise VectorError(
            f"Nothing is left of row {first + int(short[0])}: the vectors cancel out.",
            "Leave out vectors that are the same on both sides.",
        )
    return normalise(sums)
