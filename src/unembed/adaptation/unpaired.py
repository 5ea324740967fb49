"""Adapts an inverter to an encoder of which nothing but vectors is known: no text belongs to any of them."""

from copy import deepcopy
from dataclasses import replace

import numpy as np

from unembed.adaptation.pairs import OwnTexts
from unembed.adaptation.tuning import Texts, tune
from unembed.alignment import align_unpaired
from unembed.checkpoint import Adaptation, AdaptationInfo, Checkpoint
from unembed.encoders import EncoderDescription
from unembed.measures.vectors import normalise
from unembed.progress import OnProgress
from unembed.store import Fingerprint

METHOD = "unpaired"
# How near, around the mean, a mapped vector comes to the one that the inverter's own encoder would have made: 0.5 to
# 0.6 for the encoders of which pairs are known.
_LIKENESS = 0.6


def adapt_unpaired(
    base: Checkpoint,
    base_name: str,
    base_checksum: str,
    vectors: np.ndarray,
    encoder: EncoderDescription,
    own: OwnTexts,
    *,
    seed: int = 0,
    on_progress: OnProgress = lambda label, more, total: None,
) -> Checkpoint:
    """Return an inverter that reads vectors (n, d) of another encoder, whose texts nobody knows.

    The two spaces are aligned by their shapes. Readout and length head are then tuned to vectors with errors like those
    of such a map: what is wrong with a single vector is unknown, but how much is wrong is much the same for all
    encoders. The base is left as it is.

    Raises:
        AlignmentError: no map was found that deserves trust.
    """
    ours = normalise(own.vectors)
    aligned = align_unpaired(normalise(vectors), ours, seed=seed, progress=on_progress)
    mistaken = with_errors(ours, aligned.there.map_array(vectors), np.random.default_rng(seed))
    tuning = tune(base.model, mistaken, Texts(own.ids, base.model), seed=seed, on_progress=on_progress)
    info = AdaptationInfo(
        base=base_name,
        base_checksum=base_checksum,
        encoder=encoder,
        fingerprint=Fingerprint.of([vectors]),
        method=METHOD,
        pairs=0,
        others=len(own.ids),
        texts=own.origin,
        metrics={"agreement": aligned.agreement, "mutual_share": aligned.mutual_share},
    )
    return Adaptation(info, aligned.there, aligned.back, tuning.weights).apply(
        replace(base, model=deepcopy(base.model))
    )


def with_errors(ours: np.ndarray, mapped: np.ndarray, generator: np.random.Generator) -> np.ndarray:
    """Return unit vectors (n, k) of our encoder as a map between encoders would have given them.

    The errors are random, with the covariance of mapped vectors (m, k) around their mean.
    """
    mean = ours.mean(0)
    around, others = normalise(ours - mean), normalise(mapped - mapped.mean(0))
    variances, directions = np.linalg.eigh(others.T @ others / len(others))
    drawn = generator.standard_normal(ours.shape) * np.sqrt(np.maximum(variances, 0.0)) @ directions.T
    errors = normalise(drawn - (drawn * around).sum(1, keepdims=True) * around)
    spread = np.linalg.norm(ours - mean, axis=1).mean()
    mistaken = _LIKENESS * around + np.sqrt(1.0 - _LIKENESS**2) * errors
    return normalise(spread * mistaken + mean)
