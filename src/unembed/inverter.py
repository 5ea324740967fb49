"""The inverter: vectors in, texts out. Joins a checkpoint with a decoder; the face of the library."""

import logging
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Self

import numpy as np
import torch
from tokenizers import Tokenizer

from unembed.checkpoint import (
    Checkpoint,
    CheckpointInfo,
    fetch_checkpoint,
    load_checkpoint,
    push_checkpoint,
    save_checkpoint,
)
from unembed.decoding import Step, decode_by_confidence
from unembed.errors import ConfigError, EncoderError, VectorError
from unembed.model import ConditionalMDLM, NoiseSchedule

if TYPE_CHECKING:
    from unembed.encoders import Encoder

logger = logging.getLogger(__name__)

STRATEGIES = ("confidence",)


@dataclass(frozen=True)
class Inversion:
    """What was read out of one vector."""

    text: str
    tokens: list[str]
    confidences: list[float]
    """Probability of each token when it was revealed."""
    strategy: str
    passes: int

    @property
    def confidence(self) -> float:
        """Mean confidence over the tokens."""
        return sum(self.confidences) / max(1, len(self.confidences))


class Inverter:
    """Reads text out of the vectors of one encoder."""

    def __init__(self, model: ConditionalMDLM, tokenizer: Tokenizer, info: CheckpointInfo) -> None:
        self.model = model.eval()
        self.tokenizer = tokenizer
        self.info = info
        self.noise = NoiseSchedule(info.noise)

    @classmethod
    def from_pretrained(
        cls,
        name: str | Path,
        *,
        device: str = "auto",
        revision: str | None = None,
        token: str | None = None,
        cache_dir: Path | None = None,
        local_files_only: bool = False,
    ) -> Self:
        """Load an inverter from a folder or a hub id."""
        folder = fetch_checkpoint(
            str(name), revision=revision, token=token, cache_dir=cache_dir, local_files_only=local_files_only
        )
        checkpoint = load_checkpoint(folder)
        return cls(checkpoint.model, checkpoint.tokenizer, checkpoint.info).to(device)

    def save_pretrained(self, folder: str | Path, dtype: torch.dtype = torch.float32) -> None:
        """Write ``config.json``, ``model.safetensors``, ``tokenizer.json`` and a model card."""
        save_checkpoint(Path(folder), Checkpoint(self.model, self.tokenizer, self.info), dtype)

    def push_to_hub(
        self, name: str, *, private: bool = False, token: str | None = None, message: str = "Upload an inverter"
    ) -> str:
        """Upload the inverter to a hub repository; return the address of the commit."""
        with tempfile.TemporaryDirectory() as temporary:
            folder = Path(temporary) / "inverter"
            self.save_pretrained(folder)
            return push_checkpoint(folder, name, private=private, token=token, message=message)

    @property
    def device(self) -> torch.device:
        """Where the weights are."""
        return self.model.denoiser.output_bias.device

    def to(self, device: str) -> Self:
        """Move the weights; ``auto`` takes a GPU where there is one."""
        if device == "auto":
            device = "cuda" if torch.cuda.is_available() else "mps" if torch.backends.mps.is_available() else "cpu"
        try:
            self.model.to(device)
        except (RuntimeError, AssertionError) as error:
            raise ConfigError(f"The device '{device}' cannot be used: {error}", "Try --device cpu.") from error
        return self

    def invert(
        self,
        embeddings: "np.ndarray | torch.Tensor | Sequence[Sequence[float]]",
        *,
        strategy: str = "confidence",
        steps: int = 8,
        lengths: Sequence[int] | None = None,
        batch_size: int = 64,
    ) -> list[Inversion]:
        """Read the text out of each vector, without the encoder.

        Args:
            embeddings: (n, d), or one vector (d,). Any norm: they are scaled to the sphere.
            strategy: how the canvas is filled; ``confidence`` reveals the surest tokens first.
            steps: forward passes at most.
            lengths: how many tokens each text has, where that is known; else the model's own guess.
            batch_size: vectors decoded together.
        """
        if strategy not in STRATEGIES:
            raise ConfigError(f"Unknown strategy '{strategy}'.", f"Choose from: {', '.join(STRATEGIES)}.")
        if steps < 1:
            raise ConfigError(f"steps must be at least 1, not {steps}.", "8 is a good start.")
        vectors = check_vectors(embeddings, self.info)
        if lengths is not None:
            lengths = check_lengths(lengths, len(vectors), self.info)
        inversions: list[Inversion] = []
        for start in range(0, len(vectors), batch_size):
            part = slice(start, start + batch_size)
            wanted = torch.tensor(lengths[part], device=self.device) if lengths is not None else None
            batch: dict[int, Inversion] = {}
            for step in self.decode(vectors[part], steps=steps, lengths=wanted):
                if step.final:
                    batch |= dict(zip(step.rows.tolist(), self._read(step, strategy), strict=True))
            inversions += [batch[row] for row in sorted(batch)]
        return inversions

    def decode(self, vectors: np.ndarray, *, steps: int = 8, lengths: torch.Tensor | None = None) -> Iterator[Step]:
        """Decode a batch of checked vectors and yield every pass."""
        embeddings = torch.from_numpy(vectors).to(self.device)
        return decode_by_confidence(self.model, self.noise, embeddings, steps=steps, lengths=lengths)

    @torch.no_grad()
    def words(
        self, embeddings: "np.ndarray | torch.Tensor | Sequence[Sequence[float]]", *, top: int = 20
    ) -> list[list[tuple[str, float]]]:
        """Name the likeliest tokens of each text with their probabilities, by the readout alone: no order, no passes.

        Takes one product per vector, so a million vectors are read in minutes.
        """
        if self.info.model.readout.kind == "none":
            raise ConfigError("This inverter has no readout.", "Train one with model.readout.kind: linear or mlp.")
        vectors = torch.from_numpy(check_vectors(embeddings, self.info)).to(self.device)
        found = self.model.readout(vectors)[:, : self.info.vocabulary.size]
        found[:, list(self.info.special_ids)] = -torch.inf
        best = found.topk(min(top, found.shape[1]))
        return [
            [(self.tokenizer.id_to_token(token) or "", probability) for token, probability in zip(*row, strict=True)]
            for row in zip(best.indices.tolist(), best.values.exp().tolist(), strict=True)
        ]

    def invert_text(
        self, texts: Sequence[str], encoder: "Encoder", *, strategy: str = "confidence", steps: int = 8
    ) -> list[Inversion]:
        """Embed texts and read them back: the round trip that shows what a vector gives away."""
        expected, given = self.info.encoder, encoder.description
        if (expected.name, expected.prompt) != (given.name, given.prompt):
            raise EncoderError(
                f"This inverter reads vectors of '{expected.name}' (prompt: {expected.prompt!r}), "
                f"not of '{given.name}' (prompt: {given.prompt!r}).",
                f"Use load_encoder({expected.name!r}, prompt={expected.prompt!r}, revision={expected.revision!r}).",
            )
        if expected.revision != given.revision:
            logger.warning("The inverter was trained for revision %s, not %s.", expected.revision, given.revision)
        return self.invert(encoder.encode(list(texts)), strategy=strategy, steps=steps)

    def _read(self, step: Step, strategy: str) -> Iterator[Inversion]:
        for canvas, confidences in zip(step.canvas.tolist(), step.confidence.tolist(), strict=True):
            ids = self.info.vocabulary.text_ids(canvas)
            yield Inversion(
                text=self.tokenizer.decode(ids),
                tokens=[self.tokenizer.id_to_token(token) or "" for token in ids],
                confidences=confidences[: len(ids)],
                strategy=strategy,
                passes=step.passes,
            )


def check_vectors(
    embeddings: "np.ndarray | torch.Tensor | Sequence[Sequence[float]]", info: CheckpointInfo
) -> np.ndarray:
    """Return vectors as float32 (n, d), or say what is wrong with them."""
    try:
        vectors = np.asarray(
            embeddings.detach().cpu().float() if isinstance(embeddings, torch.Tensor) else embeddings, dtype=np.float32
        )
    except (TypeError, ValueError) as error:
        raise VectorError(
            "The vectors are not numbers in rows of one length.", "Give an array of shape (n, d)."
        ) from error
    if vectors.ndim == 1:
        vectors = vectors[None]
    if vectors.ndim != 2 or vectors.shape[1] != info.encoder.dim:
        raise VectorError(
            f"The vectors have the shape {vectors.shape}; this inverter reads {info.encoder.dim} numbers each.",
            f"It was trained for {info.encoder.name}. Use an inverter for the encoder that made your vectors.",
        )
    for what, bad in (("not finite", ~np.isfinite(vectors).all(1)), ("all zeros", ~vectors.any(1))):
        if bad.any():
            rows = np.flatnonzero(bad)
            shown = ", ".join(map(str, rows[:5])) + (", ..." if len(rows) > 5 else "")
            raise VectorError(
                f"{len(rows)} of {len(vectors)} vectors are {what} (rows {shown}).", "Remove these rows and run again."
            )
    return vectors


def check_lengths(lengths: Sequence[int], count: int, info: CheckpointInfo) -> Sequence[int]:
    """Refuse lengths that do not fit the vectors or the canvas."""
    if info.model.canvas == "fixed":
        raise ConfigError("This inverter finds the length itself: it has a fixed canvas.", "Leave out the lengths.")
    longest = info.model.canvas_length or 0
    if len(lengths) != count or not all(1 <= length <= longest for length in lengths):
        raise ConfigError(
            f"Expected {count} lengths from 1 to {longest}, got {len(lengths)}: {list(lengths[:5])}.",
            "Give one length per vector.",
        )
    return lengths
