"""What the results of an audit rest on, in sentences for the report."""

from collections.abc import Sequence

import numpy as np

from unembed._version import __version__
from unembed.auditing.leaks import Kind, coverage_of
from unembed.auditing.recover import GUIDED, Recovery
from unembed.auditing.result import AttackerName, CalibrationFacts
from unembed.checkpoint import CheckpointInfo

ATTACKERS: dict[AttackerName, str] = {
    "blind": "The blind attacker has a copy of the vectors, knows which encoder made them, and has a public inverter "
    "for that encoder, but never runs the encoder.",
    "guided": "The guided attacker can also run the encoder without being noticed, "
    f"{GUIDED.guided.call_limit:,} times for each vector.",
}
"""What each attacker has and knows, in a sentence."""
PATIENT = (
    "The patient attacker is the guided one with ten times as many runs of the encoder; this was not tried, but "
    "follows from what the last tenfold added."
)


def state_assumptions(
    info: CheckpointInfo,
    *,
    languages: Sequence[str],
    has_encoder: bool,
    blind_done: int,
    blind_wanted: int,
    guided_done: int | None,
    guided_wanted: int,
    minutes: float,
    calibration: CalibrationFacts | None,
) -> list[str]:
    """Say what was assumed, and what limits the results.

    Args:
        info: of the inverter.
        languages: that it writes, if they are known.
        has_encoder: whether the encoder was available.
        blind_done: vectors that were inverted.
        blind_wanted: how many were drawn.
        guided_done: vectors that were inverted with the encoder; None where that was not tried.
        guided_wanted: how many were asked for.
        minutes: the time that they had.
        calibration: what the estimate rests on, if recovery was estimated.
    """
    sentences = [ATTACKERS["blind"]]
    if guided_done is not None:
        sentences += [ATTACKERS["guided"], PATIENT] if calibration is None else [ATTACKERS["guided"]]
    sentences += [
        f"All use unembed {__version__} and an inverter trained on {info.training_rows:,} texts. An inverter "
        "with more training recovers more. So the report shows what can be done, not that no more can be done.",
        f"This inverter writes at most {info.model.canvas_length} tokens"
        f"{f' of {_either(languages)}' if languages else ''}. Of longer texts it can give back a passage or "
        "scattered words.",
        "Texts are compared in the normal form of the encoder's tokenizer. Where that is lower case, capital letters "
        "are not compared.",
    ]
    if blind_done < blind_wanted:
        sentences.append(
            f"The audit was interrupted after {blind_done:,} of {blind_wanted:,} vectors. The figures are of these."
        )
    if not has_encoder:
        sentences.append("The encoder was not available, so the stronger attacker, who uses it, was not tried.")
    if guided_done is not None and guided_done < guided_wanted:
        sentences.append(
            f"Guided inversion ended after {guided_done} of {guided_wanted} vectors; it may take {minutes:g} minutes."
        )
    if calibration is not None and guided_done is not None:
        sentences.append(
            "The guided attacker is expected to get at least what the blind one gets, and the whole text where the "
            "encoder makes the very vector of the text that was found."
        )
    if calibration is not None:
        sentences.append(
            "The database holds no texts, so recovery is estimated: from how close the recovered text is to the "
            "vector, how well several attempts agree, how confident the model is, and what the vector says about the "
            f"length and the language of its text. How these signs relate to recovery was measured on "
            f"{calibration.texts}: {calibration.n:,} texts of {len(calibration.kinds)} kinds. The intervals are so "
            "wide that they hold for each of these kinds when it is estimated from the others. Your texts may still "
            "be of another kind. To use texts of your own: unembed audit ... --calibrate FILE"
        )
    return sentences


def state_coverage(kinds: Sequence[Kind], languages: Sequence[str]) -> list[str]:
    """Say which kinds of information are not looked for in all the languages that an inverter writes."""
    partial = [kind for kind in kinds if coverage_of(kind).misses(languages)]
    if not partial:
        return []
    return [
        f"Some kinds of information are not looked for in every language of the inverter: {', '.join(partial)}. "
        "The report names the languages of each. That none was found says nothing about the others."
    ]


def _either(languages: Sequence[str]) -> str:
    *others, last = languages
    return f"{', '.join(others)} or {last}" if others else last


def doubt_the_encoder(blind: Sequence[Recovery], known_cosines: np.ndarray) -> list[str]:
    """Warn when recovered texts lie farther from their vectors than those of the encoder's own vectors do."""
    ours = np.median([recovery.cosine or 0.0 for recovery in blind])
    if ours >= np.percentile(known_cosines, 1):
        return []
    return [
        f"DOUBTFUL: the recovered texts lie unusually far from these vectors (median cosine {ours:.2f}; "
        f"{np.median(known_cosines):.2f} on known texts). Another encoder may have made the vectors. Then the results "
        "here do not hold."
    ]
