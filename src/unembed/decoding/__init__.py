"""From vectors to token ids: strategies behind one generator of :class:`Step` events."""

from unembed.decoding.decode import decode
from unembed.decoding.guided import Oracle, SearchRounds, SurrogateEncoder, TextOracle
from unembed.decoding.step import DecodedText, Step
from unembed.decoding.zero import WordBank, ZeroTools, decode_zero, load_language_model

__all__ = [
    "DecodedText",
    "Oracle",
    "SearchRounds",
    "Step",
    "SurrogateEncoder",
    "TextOracle",
    "WordBank",
    "ZeroTools",
    "decode",
    "decode_zero",
    "load_language_model",
]
