"""What the results of an audit rest on, in sentences for the report."""

from collections.abc import Sequence

import numpy as np

from unembed._version import __version__
from unembed.audit.recover import Recovery
from unembed.checkpoint import CheckpointInfo


def state_assumptions(
    info: CheckpointInfo,
    *,
    has_encoder: bool,
    guided_done: int | None,
    guided_wanted: int,
    enough: int,
    minutes: float,
    calibration: str | None,
) -> list[str]:
    """Say what was assumed, and what limits the results.

    Args:
        info: of the inverter.
        has_encoder: whether the encoder was available.
        guided_done: vectors that were inverted with it; None where that was not tried.
        guided_wanted: how many were asked for.
        enough: how many are enough for a verdict.
        minutes: the time that they had.
        calibration: where the known texts come from, if recovery was estimated.
    """
    sentences = [
        f"The attacker uses unembed {__version__} and an inverter trained on {info.training_rows:,} texts. An inverter "
        "with more training recovers more. So the report shows what can be done, not that no more can be done.",
        f"This inverter writes at most {info.model.canvas_length} tokens. Of longer texts it can give back no more.",
        "Texts are compared in the normal form of the encoder's tokenizer. Where that is lower case, capital letters "
        "are not compared.",
    ]
    if not has_encoder:
        sentences.append("The encoder was not available, so the stronger attacker, who uses it, was not tried.")
    if guided_done is not None and guided_done < guided_wanted:
        sentences.append(
            f"The time for guided inversion ({minutes:g} minutes) was over after {guided_done} of {guided_wanted} "
            "vectors."
        )
    if guided_done is not None and guided_done < enough:
        sentences.append(
            f"The verdict rests on the blind attacker: {guided_done} guided vectors are too few to decide."
        )
    if calibration is not None:
        sentences.append(
            "The database holds no texts, so recovery is estimated from three signs: how close the recovered text is "
            "to the vector, how well several attempts agree, and how confident the model is. How these signs relate to "
            f"recovery was measured on {calibration}. The estimate may be off if your texts are of another kind. "
            "To use texts of your own: unembed audit ... --calibrate FILE"
        )
    return sentences


def doubt_the_encoder(blind: Sequence[Recovery], known: Sequence[Recovery]) -> list[str]:
    """Warn when recovered texts lie farther from their vectors than those of the encoder's own vectors do."""
    ours = np.median([recovery.cosine or 0.0 for recovery in blind])
    theirs = [recovery.cosine or 0.0 for recovery in known]
    if ours >= np.percentile(theirs, 5):
        return []
    return [
        f"DOUBTFUL: the recovered texts lie unusually far from these vectors (median cosine {ours:.2f}; "
        f"{np.median(theirs):.2f} on known texts). Another encoder may have made the vectors. Then the results here "
        "do not hold."
    ]
