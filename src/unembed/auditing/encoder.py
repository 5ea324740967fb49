"""Which encoder made the vectors: named by the user, by the database, or recognised by the vectors. Loads nothing."""

from dataclasses import dataclass

import numpy as np

from unembed.auditing.sample import Sample
from unembed.checkpoint import CheckpointInfo
from unembed.connectors import StorageInfo
from unembed.encoders import Encoder
from unembed.errors import EncoderError
from unembed.identification import identify as identify_encoder
from unembed.identification.agreement import FOREIGN, SAME
from unembed.identification.known import short_name
from unembed.inverter.vectors import describe_scale, find_doubts
from unembed.measures import cosine

_CHECKED = 64


@dataclass(frozen=True)
class Identified:
    """The encoder that an audit assumes to have made the vectors."""

    name: str
    because: str
    """How it is known, as a sentence for the report."""
    certain: bool
    """True when the user or the database named it; False when the vectors only look like it."""


def identify(info: CheckpointInfo, kept: StorageInfo, sample: Sample, asked: str | None = None) -> Identified:
    """Decide whether an inverter's encoder made the vectors of a vector database.

    Args:
        info: of the inverter: which encoder it reads, and what that encoder's vectors look like.
        kept: what the database says.
        sample: some of its vectors.
        asked: the encoder that the user named.

    Raises:
        EncoderError: it did not, or the database names another one.
    """
    description = info.encoder
    name, width = description.name, sample.vectors.shape[1]
    if width != description.dim:
        named = f" The database names '{kept.encoder}'." if kept.encoder else ""
        likely, remedy = _likely_encoder(kept, sample, name)
        raise EncoderError(
            f"The vectors have {width} numbers; those of {name}, which this inverter reads, have {description.dim}."
            f"{named}{likely}",
            remedy,
        )
    if asked is not None:
        return Identified(name, "It was named when the audit was started.", certain=True)
    if kept.encoder is not None:
        if short_name(kept.encoder) != short_name(name):
            _, remedy = _likely_encoder(kept, sample, name)
            raise EncoderError(
                f"The database says that '{kept.encoder}' made its vectors ({kept.encoder_said_by}). This inverter "
                f"reads those of {name}.",
                f'{remedy} If the database is wrong, give `encoder="{name}"`',
            )
        return Identified(name, f"The database says so: {kept.encoder_said_by}.", certain=True)
    if doubts := find_doubts(sample.vectors, info):
        likely, remedy = _likely_encoder(kept, sample, name)
        raise EncoderError(
            f"The database does not name its encoder. The vectors do not look like those of {name}, which this "
            f"inverter reads: {'; '.join(doubts)}.{likely}",
            f'If {name} made them nevertheless, give `encoder="{name}"`. Otherwise: {remedy}',
        )
    scale = describe_scale(sample.vectors, info)
    likeness = "the means and spreads" if info.fingerprint else "the norms"
    return Identified(
        name,
        f"The database does not name its encoder. The vectors match {name} in {likeness} and in their {width} numbers, "
        f"so this encoder is assumed.{f' {scale}' if scale else ''}",
        certain=False,
    )


def _likely_encoder(kept: StorageInfo, sample: Sample, but: str) -> tuple[str, str]:
    """Say which known encoder probably made the vectors, as a sentence, and what to do; nothing is embedded for it."""
    found = identify_encoder(sample.vectors, storage=kept)
    if found.name is None or short_name(found.name) == short_name(but):
        return "", "Give an inverter for the encoder that made them as `model`; unembed train makes one."
    return f" They are probably those of {found.name}.", f"{found.advice} Give that inverter as `model`."


def check_texts(encoder: Encoder, sample: Sample, identified: Identified) -> Identified:
    """Embed some of the stored texts again and compare with the stored vectors: the most reliable test."""
    assert sample.texts is not None
    texts, vectors = sample.texts[:_CHECKED], sample.vectors[:_CHECKED]
    again = encoder.encode(texts)
    cosines = cosine(again, vectors)
    median = float(np.median(cosines))
    if median < FOREIGN:
        likely, remedy = _likely_encoder(StorageInfo("vectors"), sample, identified.name)
        raise EncoderError(
            f"These are not vectors of {identified.name}: of {len(texts)} stored texts embedded again, half have a "
            f"cosine below {median:.2f} with the stored vector.{likely}",
            remedy,
        )
    same = int((cosines >= SAME).sum())
    verb = "gives" if median >= SAME else "gives only"
    checked = f"Checked: {identified.name} {verb} the stored vector again for {same} of {len(texts)} stored texts."
    if median < SAME:
        checked += (
            f" The others differ (median cosine {median:.2f}): texts may have been changed or cut before they were "
            "embedded, or vectors changed after."
        )
    return Identified(identified.name, f"{identified.because} {checked}", certain=True)
