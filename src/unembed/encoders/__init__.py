"""Text to vector: the :class:`Encoder` protocol, and one adapter per family."""

from unembed.encoders.base import Encoder, EncoderDescription, SubstitutingEncoder
from unembed.encoders.catalogue import CATALOGUE, KnownEncoder
from unembed.encoders.loading import is_endpoint, load_encoder, load_tokenizer

__all__ = [
    "CATALOGUE",
    "Encoder",
    "EncoderDescription",
    "KnownEncoder",
    "SubstitutingEncoder",
    "is_endpoint",
    "load_encoder",
    "load_tokenizer",
]
