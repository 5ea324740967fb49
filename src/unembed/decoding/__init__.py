"""From vectors to token ids: strategies behind one generator of :class:`Step` events."""

from unembed.decoding.decode import decode
from unembed.decoding.guided import GuidedRounds, Oracle, SurrogateEncoder, TextOracle
from unembed.decoding.step import DecodedText, Step

__all__ = ["DecodedText", "GuidedRounds", "Oracle", "Step", "SurrogateEncoder", "TextOracle", "decode"]
