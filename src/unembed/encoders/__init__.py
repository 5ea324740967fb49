"""Text to vector: the :class:`Encoder` protocol, and one adapter per family."""

from unembed.encoders.base import (
    Encoder,
    EncoderDescription,
    Precision,
    SubstitutingEncoder,
    can_substitute,
    known_tokenizer,
    quicker,
)
from unembed.encoders.catalogue import CATALOGUE, KnownEncoder
from unembed.encoders.loading import is_endpoint, load_described_encoder, load_encoder, load_tokenizer, sends_texts
from unembed.encoders.plugin import EncoderPlugin

__all__ = [
    "CATALOGUE",
    "Encoder",
    "EncoderDescription",
    "EncoderPlugin",
    "KnownEncoder",
    "Precision",
    "SubstitutingEncoder",
    "can_substitute",
    "is_endpoint",
    "known_tokenizer",
    "load_described_encoder",
    "load_encoder",
    "load_tokenizer",
    "quicker",
    "sends_texts",
]
