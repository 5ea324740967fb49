"""Guided decoding: with the encoder's help, search for a text whose vector is the given one.

Blind hypotheses are embedded; round after round, the best of them are changed here and there, by the denoiser, by the
encoder's gradient and by chance, and the changed texts are embedded in turn. The nearest text is kept.
"""

from unembed.decoding.guided.hypothesis import Hypothesis
from unembed.decoding.guided.oracle import Oracle, TextOracle
from unembed.decoding.guided.rounds import GuidedRounds, decode_guided

__all__ = ["GuidedRounds", "Hypothesis", "Oracle", "TextOracle", "decode_guided"]
