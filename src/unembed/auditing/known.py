"""Inverts known texts, to see how the signs of a recovery relate to how much came back."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from unembed.auditing.calibration import Calibration, Clues, identity_of
from unembed.auditing.estimate import KnownRecoveries, signs_of
from unembed.auditing.findings import OriginalTexts, Sight, measure
from unembed.auditing.recover import Attacker, Recovery
from unembed.errors import CorpusError, UnembedError

_MINIMUM = 20
_BLOCKS = 5


@dataclass(frozen=True)
class KnownTexts:
    """Texts with their vectors."""

    name: str
    """Where they come from."""
    kinds: list[str]
    """Of each text."""
    vectors: np.ndarray
    originals: OriginalTexts
    like_yours: bool = True
    """Whether they are like the texts that are audited, as their user says."""

    @classmethod
    def embed(cls, name: str, texts: Sequence[str], attacker: Attacker, *, like_yours: bool) -> "KnownTexts":
        """Embed texts of one kind.

        They stand in blocks for several kinds, so that an estimate's interval says how far blocks differ.
        """
        different = list(dict.fromkeys(text.strip() for text in texts if text.strip()))
        if len(different) < _MINIMUM:
            raise CorpusError(
                f"{name} has {len(different)} different texts; an estimate needs at least {_MINIMUM}.",
                "Give more texts, one per line.",
            )
        assert attacker.encoder is not None
        kinds = [f"block {row % _BLOCKS + 1}" for row in range(len(different))]
        originals = OriginalTexts.of(different, attacker.inverter)
        return cls(name, kinds, attacker.encoder.encode(different), originals, like_yours)

    def recover(self, attacker: Attacker, sight: Sight) -> Calibration:
        """Invert the texts."""
        clues = Clues.none(self.vectors.shape[1])
        recoveries = [recovery for part in attacker.blind(self.vectors, "calibration") for recovery in part]
        if not recoveries:
            raise UnembedError("The audit was interrupted while it was calibrated.", "Run the same command again.")
        known = self.know(recoveries, sight, clues)
        return Calibration(self.name, clues, known, identity_of(attacker.inverter.info), like_yours=self.like_yours)

    def know(self, recoveries: Sequence[Recovery], sight: Sight, clues: Clues) -> KnownRecoveries:
        """Compare recoveries of the first texts with the texts."""
        n = len(recoveries)
        values = measure(recoveries, self.originals.part(0, n), sight)
        values["tokens"] = np.array([float(len(ids)) for ids in self.originals.ids[:n]])
        values.pop("cosine", None)  # is known for every recovery
        return KnownRecoveries(self.kinds[:n], signs_of(recoveries, clues.read(self.vectors[:n])), values)
