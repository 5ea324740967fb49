"""From vectors to token ids: strategies behind one generator of :class:`Step` events."""

from unembed.decoding.decode import decode
from unembed.decoding.oracle import Oracle, TextOracle
from unembed.decoding.step import Step

__all__ = ["Oracle", "Step", "TextOracle", "decode"]
