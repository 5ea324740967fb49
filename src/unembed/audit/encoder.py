"""Whose vectors are these? From the user, from the store's own words, or from the vectors. Loads nothing.

The seam for more: :func:`resembles` looks at dimension and norm only. What tells encoders of one dimension apart, a
fingerprint of each that is installed, belongs there.
"""

from dataclasses import dataclass

import numpy as np

from unembed.audit.sample import Sample
from unembed.connectors import Keeping
from unembed.encoders import Encoder, EncoderDescription
from unembed.errors import EncoderError

_NORM_TOLERANCE = 0.05
# Below this, vectors of the stored texts are not those in the store; rounding stays far above.
_SAME, _FOREIGN = 0.97, 0.5
_CHECKED = 64


@dataclass(frozen=True)
class Identified:
    """The encoder that an audit takes for the one that made the vectors."""

    name: str
    because: str
    """How it is known, as a sentence for the report."""
    certain: bool
    """Whether somebody said so, or the vectors only look like it."""


def identify(description: EncoderDescription, kept: Keeping, sample: Sample, asked: str | None = None) -> Identified:
    """Decide whether an inverter's encoder made the vectors of a store.

    Args:
        description: the encoder whose vectors the inverter reads.
        kept: what the store says.
        sample: some of its vectors.
        asked: the encoder that the user named.

    Raises:
        EncoderError: it did not, or somebody says otherwise.
    """
    name, width = description.name, sample.vectors.shape[1]
    remedy = "Give --model an inverter for the encoder that made them; unembed train makes one."
    if width != description.dim:
        said = f" The store names '{kept.encoder}'." if kept.encoder else ""
        raise EncoderError(
            f"The vectors have {width} numbers; those of {name}, which this inverter reads, have {description.dim}."
            f"{said}",
            remedy,
        )
    if asked is not None:
        return Identified(name, "It was named with --encoder.", certain=True)
    if kept.encoder is not None:
        if _short(kept.encoder) != _short(name):
            raise EncoderError(
                f"The store says that '{kept.encoder}' made its vectors ({kept.encoder_said_by}); this inverter reads "
                f"those of {name}.",
                f"{remedy} If the store is wrong: --encoder {name}",
            )
        return Identified(name, f"The store says so: {kept.encoder_said_by}.", certain=True)
    if not resembles(description, sample):
        raise EncoderError(
            f"It is unknown which encoder made these vectors. They have norms from {sample.norms[0]:.3g} to "
            f"{sample.norms[2]:.3g}, and {name}, which this inverter reads, gives vectors of norm 1.",
            f"If it was {name} all the same, say --encoder {name}. Otherwise: {remedy}",
        )
    return Identified(
        name,
        f"Nobody says which encoder made the vectors. They have as many numbers ({width}) and such norms as those of "
        f"{name}, so it is taken for granted.",
        certain=False,
    )


def resembles(description: EncoderDescription, sample: Sample) -> bool:
    """Whether vectors look like those of an encoder, as far as dimension and norm tell."""
    if sample.vectors.shape[1] != description.dim:
        return False
    least, _, most = sample.norms
    return not description.normalised or (least > 1 - _NORM_TOLERANCE and most < 1 + _NORM_TOLERANCE)


def check_texts(encoder: Encoder, sample: Sample, identified: Identified) -> Identified:
    """Embed some of the stored texts again, and compare with the stored vectors: the surest test there is."""
    assert sample.texts is not None
    texts, vectors = sample.texts[:_CHECKED], sample.vectors[:_CHECKED]
    again = encoder.encode(texts)
    cosines = (again * vectors).sum(1) / (np.linalg.norm(again, axis=1) * np.linalg.norm(vectors, axis=1))
    middle = float(np.median(cosines))
    if middle < _FOREIGN:
        raise EncoderError(
            f"These are not vectors of {identified.name}: of {len(texts)} stored texts embedded again, half have a "
            f"cosine below {middle:.2f} with the stored vector.",
            "Give --model an inverter for the encoder that made them.",
        )
    same = int((cosines >= _SAME).sum())
    verb = "gives" if middle >= _SAME else "gives only"
    checked = f"Checked: {identified.name} {verb} the stored vector again for {same} of {len(texts)} stored texts."
    if middle < _SAME:
        checked += (
            f" The others differ (median cosine {middle:.2f}): texts may have been changed or cut before they were "
            "embedded, or vectors changed after."
        )
    return Identified(identified.name, f"{identified.because} {checked}", certain=True)


def _short(name: str) -> str:
    return name.rstrip("/").rpartition("/")[2].lower()
