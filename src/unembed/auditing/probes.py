"""Triage by subject: which vectors lie near sentences about health, money, credentials or minors. Inverts nothing.

A probe is a list of sentences that the encoder embeds. All vectors are centred first on the mean of everyday sentences:
vectors of many encoders point the same way. A vector's score is the mean of two cosines: with the centre of the probe,
and with the nearest of its sentences. It ranks; it is no probability.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from unembed.connectors import VectorBatch
from unembed.connectors.source import Id
from unembed.corpus import read_texts
from unembed.encoders import Encoder
from unembed.errors import ConfigError, did_you_mean
from unembed.lists import load_lines

PROBES = ("health", "money", "credentials", "minors")
"""What comes with the package."""
_NEAREST = 3
_USUAL = 0.95


def load_probe(name: str) -> list[str]:
    """Return the sentences of a built-in probe, or of a file of a user's own."""
    if name in PROBES:
        return load_lines(f"probe-{name}")
    if not Path(name).is_file():
        raise ConfigError(
            f"There is no probe '{name}', and no such file: {did_you_mean(name, PROBES)}",
            "Name a probe, or a file with one sentence on each line.",
        )
    sentences = [text for text in read_texts(name) if text.strip()]
    if not sentences:
        raise ConfigError(f"{name} has no sentences.", "Write one sentence on each line.")
    return sentences


class Probe:
    """Scores vectors by how near they are to some sentences."""

    def __init__(self, sentences: Sequence[str], encoder: Encoder) -> None:
        neutral = _units(encoder.encode(load_lines("calibration")))
        self._centre = neutral.mean(axis=0)
        self._sentences = _units(_units(encoder.encode(list(sentences))) - self._centre)
        self._middle = _units(self._sentences.mean(axis=0, keepdims=True))[0]
        self.neutral = float(np.quantile(self.score(neutral), _USUAL))
        """The score that 95 of 100 sentences about everyday things do not reach."""

    def score(self, vectors: np.ndarray) -> np.ndarray:
        """Return the scores (n,) of vectors (n, d)."""
        centred = _units(_units(vectors) - self._centre)
        cosines = centred @ self._sentences.T
        count = min(_NEAREST, cosines.shape[1])
        nearest = np.partition(cosines, -count, axis=1)[:, -count:].mean(axis=1)
        return np.asarray((nearest + centred @ self._middle) / 2)


@dataclass(frozen=True)
class Ranked:
    """The vectors that are nearest to a probe, the nearest first."""

    rows: list[int]
    """Their places in the source, counted from 0."""
    ids: list[Id]
    scores: np.ndarray
    vectors: np.ndarray
    texts: list[str | None]
    seen: int
    above: int
    """Vectors of all that score more than 95 of 100 everyday sentences do."""


def rank(batches: Iterable[VectorBatch], probe: Probe, most: int) -> Ranked:
    """Read all vectors and keep the nearest ``most`` of them; memory does not grow with their number."""
    kept: list[tuple[float, int, Id, np.ndarray, str | None]] = []
    seen = above = 0
    for batch in batches:
        scores = probe.score(batch.vectors)
        above += int((scores > probe.neutral).sum())
        best = np.argsort(-scores, kind="stable")[:most].tolist()
        texts = batch.texts or [None] * len(batch)
        kept += [
            (float(scores[row]), seen + row, batch.ids[row], batch.vectors[row].copy(), texts[row]) for row in best
        ]
        kept = sorted(kept, key=lambda entry: (-entry[0], entry[1]))[:most]
        seen += len(batch)
    return Ranked(
        rows=[entry[1] for entry in kept],
        ids=[entry[2] for entry in kept],
        scores=np.array([entry[0] for entry in kept]),
        vectors=np.array([entry[3] for entry in kept]),
        texts=[entry[4] for entry in kept],
        seen=seen,
        above=above,
    )


def _units(vectors: np.ndarray) -> np.ndarray:
    values = np.asarray(vectors, dtype=np.float32)
    return np.asarray(values / np.maximum(np.linalg.norm(values, axis=1, keepdims=True), 1e-12))
