"""Text to vector: the :class:`Encoder` protocol, and one adapter per family."""

from unembed.encoders.base import Encoder, EncoderDescription, SubstitutingEncoder
from unembed.encoders.loading import load_encoder

__all__ = ["Encoder", "EncoderDescription", "SubstitutingEncoder", "load_encoder"]
