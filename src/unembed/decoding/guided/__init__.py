"""Guided decoding: with the help of the encoder, or of its surrogate, search for a text whose vector is the given one.

Blind hypotheses are embedded; round after round, the best of them are changed here and there, by the denoiser, by the
encoder's gradient and by chance, and the changed texts are embedded in turn. The nearest text is kept.
"""

from unembed.decoding.guided.hypothesis import Hypothesis
from unembed.decoding.guided.oracle import Oracle, TextOracle
from unembed.decoding.guided.rounds import SearchRounds, decode_guided
from unembed.decoding.guided.surrogate import SurrogateEncoder

__all__ = ["Hypothesis", "Oracle", "SearchRounds", "SurrogateEncoder", "TextOracle", "decode_guided"]
