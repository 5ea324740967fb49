"""From vectors to token ids: strategies behind one generator of :class:`Step` events."""

from unembed.decoding.decode import decode
from unembed.decoding.guided import Oracle, SearchRounds, SurrogateEncoder, TextOracle
from unembed.decoding.step import DecodedText, Step

__all__ = ["DecodedText", "Oracle", "SearchRounds", "Step", "SurrogateEncoder", "TextOracle", "decode"]
