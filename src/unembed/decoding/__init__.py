"""From vectors to token ids: strategies behind one generator of :class:`Step` events. Sees no text and no files."""

from unembed.decoding.confidence import decode_by_confidence
from unembed.decoding.step import Step

__all__ = ["Step", "decode_by_confidence"]
