"""What every encoder can do, and how it describes itself. Knows no concrete encoder."""

from collections.abc import Sequence
from typing import Literal, Protocol, Self, TypeGuard

import numpy as np
from pydantic import BaseModel, ConfigDict
from tokenizers import Tokenizer

from unembed.errors import EncoderError
from unembed.text import well_formed

Precision = Literal["float32", "bfloat16"]
"""The numbers that an encoder computes with; its vectors are float32 in any case."""

_UNIT_TOLERANCE = 1e-2


class EncoderDescription(BaseModel):
    """All that decides which vector a text gets; recorded with the vectors and in the checkpoint."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    name: str
    revision: str
    dim: int
    prompt: str | None
    pooling: str
    normalised: bool
    task: str | None = None
    """The adapter that was switched on, of encoders that have one for each task."""
    truncate_dim: int | None = None
    """To how many numbers vectors were cut, if they were."""
    precision: Precision = "float32"
    """Stores of earlier versions do not say; they were embedded in float32."""

    @classmethod
    def of_vectors(cls, name: str, vectors: np.ndarray, prompt: str | None = None) -> Self:
        """Describe an encoder of which only vectors (n, d) are at hand."""
        lengths = np.linalg.norm(vectors, axis=1)
        return cls(
            name=name,
            revision="unknown",
            dim=vectors.shape[1],
            prompt=prompt,
            pooling="unknown",
            normalised=bool(np.abs(lengths - 1.0).max() < _UNIT_TOLERANCE),
        )


class Encoder(Protocol):
    """Maps texts to vectors, exactly as the pipeline that fills a vector database would."""

    @property
    def description(self) -> EncoderDescription:
        """Name, revision, dimension, prompt, pooling and normalisation."""
        ...

    @property
    def tokenizer(self) -> Tokenizer | None:
        """A tokenizer of its own, without padding or truncation; None where it is not known."""
        ...

    def encode(self, sentences: Sequence[str], *, batch_size: int = 32, show_progress_bar: bool = False) -> np.ndarray:
        """Return one float32 row per sentence."""
        ...


class SubstitutingEncoder(Encoder, Protocol):
    """An encoder whose gradient shows which tokens would bring a text nearer to a vector.

    It says so itself, by ``supports_substitutions``; ask with :func:`can_substitute`.
    """

    @property
    def supports_substitutions(self) -> bool:
        """Whether ``substitutions`` works here."""
        ...

    @property
    def tokenizer(self) -> Tokenizer:
        """The tokenizer whose ids ``substitutions`` returns."""
        ...

    def substitutions(
        self, sentences: Sequence[str], targets: np.ndarray, top: int, *, forbidden: Sequence[int] = ()
    ) -> list[tuple[np.ndarray, np.ndarray] | None]:
        """Estimate what each substitution of one token would add to the cosine with a target (n, d).

        Returns:
            For each sentence the ``top`` tokens at each of its positions and their gains, both (T, top), best first;
            None where the sentence's own tokens cannot be separated from the prompt's.
        """
        ...


def can_substitute(encoder: Encoder) -> TypeGuard[SubstitutingEncoder]:
    """Whether an encoder says that it can estimate substitutions."""
    return bool(getattr(encoder, "supports_substitutions", False))


def quicker(encoder: Encoder) -> Encoder:
    """Return an encoder that gives practically the same vectors in less time, where there is one; else the same."""
    make = getattr(encoder, "quicker", None)
    return encoder if make is None else make()


def known_tokenizer(encoder: Encoder) -> Tokenizer:
    """Return an encoder's tokenizer, or say how to choose one."""
    tokenizer = encoder.tokenizer
    if tokenizer is None:
        raise EncoderError(
            f"The tokenizer of the encoder '{encoder.description.name}' is not known.",
            "Choose one for the texts: `tokenizer=all-MiniLM-L6-v2`, or a tokenizer.json.",
        )
    return tokenizer


def as_texts(sentences: Sequence[str]) -> list[str]:
    """Return sentences as a list that a tokenizer accepts; refuse one string, which is a list of letters."""
    if isinstance(sentences, str):
        raise EncoderError("encode takes a list of sentences, not one string.", "Write encode([text]).")
    return [well_formed(text) for text in sentences]
