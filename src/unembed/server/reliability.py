"""How far a recovered text can be trusted, in words: close, rough or noise. Knows signs, no original texts.

The limits come from the stored calibration (1,260 known texts, blind). At a cosine of 0.90 and more, 72 to 97 % of the
content words were right; from 0.65 to 0.90 it was 23 to 55 %; below 15 % or less. A search raises the cosine of wrong
texts, too, so its limits are higher.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Literal

import numpy as np

from unembed.auditing.calibration import Calibration, stored_for
from unembed.auditing.estimate import KnownRecoveries
from unembed.inverter import Inversion, Inverter
from unembed.server.schemas import Reliability

Level = Literal["close", "rough", "noise", "unknown"]
# The least cosine of a close and of a rough text.
_BLIND, _SEARCHED = (0.90, 0.65), (0.97, 0.80)
# The least expected share of content words.
_EXPECTED = (0.65, 0.20)
# The calibration's signs without the cosine and the agreement of hypotheses, which a single blind text does not have.
_FIRST_SIGN = 2
_MEANING: dict[Level, str] = {
    "close": "Most of these words are right.",
    "rough": "The subject is right; many of the words are not.",
    "noise": "This text means nothing.",
    "unknown": "Nothing is known about how good it is.",
}


@dataclass(frozen=True)
class Judge:
    """Judges the texts of one inverter."""

    inverter: Inverter

    def judge(
        self, inversion: Inversion, vector: np.ndarray, cosine: float | None, warnings: Sequence[str]
    ) -> Reliability:
        """Say how far a text can be trusted: by the warnings, by the cosine where it is known, else by an estimate."""
        if warnings:
            return _say("noise", "The vector does not look like one of the encoder’s.")
        if cosine is not None:
            searched = bool(inversion.encoder_calls)
            level = _level(cosine, _SEARCHED if searched else _BLIND)
            return _say(level, f"Its own vector has a cosine of {cosine:.2f} with the given one.")
        expected = self._expected(inversion, vector)
        if expected is None:
            return _say("unknown", "There is no encoder to compare with, and no calibration for this model.")
        return _say(
            _level(expected, _EXPECTED), f"Of known texts like it, {expected:.0%} of the words came back (an estimate)."
        )

    def _expected(self, inversion: Inversion, vector: np.ndarray) -> float | None:
        if self._known is None or self._calibration is None:
            return None
        own = [inversion.confidence, np.log(max(1, len(inversion.ids)))]
        signs = np.concatenate([[own], self._calibration.clues.read(vector[None])], axis=1)
        return float(self._known.expect(signs)["passage_recall"][0])

    @cached_property
    def _calibration(self) -> Calibration | None:
        return stored_for(self.inverter.info)

    @cached_property
    def _known(self) -> KnownRecoveries | None:
        if self._calibration is None:
            return None
        known = self._calibration.known
        return KnownRecoveries(
            known.kinds, known.signs[:, _FIRST_SIGN:], {"passage_recall": known.values["passage_recall"]}
        )


def _level(value: float, limits: tuple[float, float]) -> Level:
    return "close" if value >= limits[0] else "rough" if value >= limits[1] else "noise"


def _say(level: Level, reason: str) -> Reliability:
    return Reliability(level=level, meaning=_MEANING[level], reason=reason)
