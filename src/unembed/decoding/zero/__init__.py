"""A search without any training: a language model and another encoder propose texts, the encoder under attack judges.

After Zero2Text (https://arxiv.org/abs/2602.01757). The encoder under attack is only asked for vectors of texts. A
second, local encoder ranks many texts for each one that is asked: a linear map takes its vectors to those of the
encoder under attack, and learns from every answer.
"""

from unembed.decoding.zero.decode import ZeroTools, decode_zero
from unembed.decoding.zero.language import CausalLanguageModel, LanguageModel, load_language_model
from unembed.decoding.zero.words import WordBank

__all__ = ["CausalLanguageModel", "LanguageModel", "WordBank", "ZeroTools", "decode_zero", "load_language_model"]
