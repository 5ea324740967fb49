"""From an inverter for one encoder to an inverter for another, in minutes. Knows nothing of files or decoding."""

from unembed.adaptation.adapt import adapt_checkpoint
from unembed.adaptation.pairs import Pairs, embed_pairs, pair_known

__all__ = ["Pairs", "adapt_checkpoint", "embed_pairs", "pair_known"]
