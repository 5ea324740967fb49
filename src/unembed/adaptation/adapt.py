"""Adapts an inverter to another encoder, given pairs: texts with their vectors by both encoders."""

from copy import deepcopy
from dataclasses import asdict, replace

import numpy as np

from unembed.adaptation.pairs import OwnTexts, Pairs
from unembed.adaptation.tuning import Texts, readout_f1, tune
from unembed.alignment import PairedFit, fit_pairs, imitate
from unembed.checkpoint import Adaptation, AdaptationInfo, Checkpoint
from unembed.progress import OnProgress
from unembed.store import Fingerprint

ENOUGH = 10_000
"""Pairs and other texts together; more were not measured to help."""
_MEASURED = 500


def adapt_checkpoint(
    base: Checkpoint,
    base_name: str,
    base_checksum: str,
    pairs: Pairs,
    *,
    others: OwnTexts | None = None,
    quick: bool = False,
    seed: int = 0,
    on_progress: OnProgress = lambda label, more, total: None,
) -> Checkpoint:
    """Return an inverter that reads the vectors of another encoder.

    Vectors are mapped to those of the inverter's own encoder. The map is chosen by how well the inverter's readout
    names words of held-out texts. Then readout and length head are tuned to the map's errors, if that helps on
    held-out texts. The base is left as it is.

    Other texts help where pairs are few: their vectors tell where our encoder puts texts, and readout and length head
    are tuned on them too, with vectors that imitate the other encoder's.

    If it must be ``quick``, fewer maps are compared, and what was held out to judge the tuning is not learnt from: a
    third of the time, for inverters of which many are needed.
    """
    wanted = max(0, ENOUGH - len(pairs.ids))
    more = OwnTexts(others.ids[:wanted], others.vectors[:wanted], others.origin) if others and wanted else None
    texts = Texts([*pairs.ids, *(more.ids if more else ())], base.model)

    def judge(mapped: np.ndarray, rows: np.ndarray) -> np.ndarray:
        return readout_f1(base.model, mapped, texts, rows)

    fit = fit_pairs(
        pairs.theirs,
        pairs.ours,
        judge=judge if base.model.readout.gives_prior else None,
        others=more.vectors if more else None,
        quick=quick,
        seed=seed,
        on_progress=on_progress,
    )
    mapped = fit.held_out
    if more:
        imitated = imitate(pairs.theirs, pairs.ours, more.vectors, seed=seed)
        mapped = np.concatenate([mapped, fit.there.map_array(imitated)])
    tuning = tune(base.model, mapped, texts, real=len(pairs.ids), quick=quick, seed=seed, on_progress=on_progress)
    own = np.arange(min(len(pairs.ours), _MEASURED))
    info = AdaptationInfo(
        base=base_name,
        base_checksum=base_checksum,
        encoder=pairs.encoder,
        fingerprint=Fingerprint.of([pairs.theirs]),
        method=_describe(fit),
        pairs=fit.pairs,
        others=len(more.ids) if more else 0,
        texts=pairs.origin,
        width=0 if fit.there.correction is None else fit.there.correction.width,
        metrics={
            "map_cosine": fit.cosine,
            "map_top1": fit.top1,
            "mapped_readout_f1": tuning.before,
            "tuned_readout_f1": tuning.after,
            "base_readout_f1": float(readout_f1(base.model, pairs.ours[own], texts, own)[0]),
        },
    )
    return Adaptation(info, fit.there, fit.back, tuning.weights).apply(replace(base, model=deepcopy(base.model)))


def _describe(fit: PairedFit) -> str:
    """Return the method and its settings as text."""
    settings = ", ".join(f"{name} {value:g}" for name, value in asdict(fit.method).items())  # type: ignore[call-overload]
    return f"{fit.method.name} ({settings})" if settings else fit.method.name
