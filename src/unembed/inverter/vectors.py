"""Checks of what the user gives: vectors, and the lengths of their texts. Knows nothing of decoding."""

from collections.abc import Sequence

import numpy as np
import torch

from unembed.checkpoint import CheckpointInfo
from unembed.encoders import EncoderDescription
from unembed.errors import ConfigError, VectorError
from unembed.measures.vectors import find_faults
from unembed.store.fingerprint import describe_scale as describe_scale_of
from unembed.store.fingerprint import doubtful_lengths

Embeddings = np.ndarray | torch.Tensor | Sequence[Sequence[float]]
"""Vectors in rows (n, d), or a single one (d,)."""

LENGTH_QUANTILES = (0.1, 0.5, 0.9)
"""How the estimated length of a text is said: the range that holds 80 % of such texts, and its middle."""


def check_vectors(embeddings: Embeddings, info: CheckpointInfo, *, first_row: int = 0) -> np.ndarray:
    """Return vectors as float32 (n, d), or say what is wrong with them; rows are counted from ``first_row``."""
    vectors = as_vectors(embeddings, info.encoder.dim)
    if vectors.ndim != 2 or vectors.shape[1] != info.encoder.dim:
        raise VectorError(
            f"The vectors have the shape {vectors.shape}; this inverter reads {info.encoder.dim} numbers each.",
            f"It was trained for {info.encoder.name}. Use an inverter for the encoder that made your vectors.",
        )
    return refuse_faulty(vectors, first_row=first_row)


def check_vectors_of(embeddings: Embeddings, encoder: EncoderDescription, *, first_row: int = 0) -> np.ndarray:
    """Return vectors of an encoder, for which there may be no inverter, as float32; or say what is wrong with them."""
    vectors = as_vectors(embeddings, encoder.dim)
    if vectors.ndim != 2 or vectors.shape[1] != encoder.dim:
        raise VectorError(
            f"The vectors have the shape {vectors.shape}; {encoder.name} gives {encoder.dim} numbers each.",
            "Give the encoder that made the vectors; `unembed identify` finds out which known one it was.",
        )
    return refuse_faulty(vectors, first_row=first_row)


def as_vectors(embeddings: Embeddings, dim: int) -> np.ndarray:
    """Return vectors as float32; a single one, or none, in rows."""
    try:
        vectors = np.asarray(
            embeddings.detach().cpu().float() if isinstance(embeddings, torch.Tensor) else embeddings, dtype=np.float32
        )
    except (TypeError, ValueError) as error:
        raise VectorError(
            "The vectors are not numbers in rows of one length.", "Give an array of shape (n, d)."
        ) from error
    if vectors.shape == (0,):
        return np.empty((0, dim), dtype=np.float32)
    return vectors[None] if vectors.ndim == 1 else vectors


def refuse_faulty(vectors: np.ndarray, *, first_row: int = 0) -> np.ndarray:
    """Return vectors (n, d), if they can be an encoder's; rows are counted from ``first_row``."""
    for what, bad in find_faults(vectors).items():
        if bad.any():
            rows = first_row + np.flatnonzero(bad)
            shown = ", ".join(map(str, rows[:5])) + (", ..." if len(rows) > 5 else "")
            raise VectorError(
                f"{len(rows)} of {len(vectors)} vectors are {what} (rows {shown}).", "Remove these rows and run again."
            )
    return vectors


def check_lengths(lengths: Sequence[int], count: int, info: CheckpointInfo) -> Sequence[int]:
    """Refuse lengths that do not fit the vectors or the canvas."""
    if info.model.canvas == "fixed":
        raise ConfigError("This inverter finds the length itself: it has a fixed canvas.", "Leave out the lengths.")
    longest = info.model.canvas_length
    if len(lengths) != count or not all(1 <= length <= longest for length in lengths):
        raise ConfigError(
            f"Expected {count} lengths from 1 to {longest}, got {len(lengths)}: {list(lengths[:5])}.",
            "Give one length per vector.",
        )
    return lengths


def find_doubts(vectors: np.ndarray, info: CheckpointInfo) -> list[str]:
    """Say why vectors (n, d) do not look like those of an inverter's encoder; in most cases nothing."""
    if not len(vectors):
        return []
    if info.fingerprint:
        return info.fingerprint.doubts(vectors)
    return doubtful_lengths(vectors, 1.0) if info.encoder.normalised else []


def describe_long_texts(lengths: np.ndarray | None, canvas_length: int) -> list[str]:
    """Say how many texts, of estimated lengths (n, 3), are most probably longer than an inverter writes."""
    long = np.empty((0, 3)) if lengths is None else lengths[lengths[:, 0] > canvas_length]
    if lengths is None or not len(long):
        return []
    who = "This text probably has" if len(lengths) == 1 else f"{len(long):,} of {len(lengths):,} texts probably have"
    least = int(long[:, 0].min())
    return [
        f"{who} {least} tokens or more. This inverter writes at most {canvas_length}: what comes back is a "
        "shorter text with a similar vector, not the text itself."
    ]


def describe_scale(vectors: np.ndarray, info: CheckpointInfo) -> str | None:
    """Say by what factor vectors (n, d) were multiplied for storage; None if they were not."""
    known = info.fingerprint
    if vectors.shape[1:] != (info.encoder.dim,) or not (known or info.encoder.normalised):
        return None
    return describe_scale_of(vectors, known.norm if known else 1.0, known.norm_spread if known else 0.0)
