"""From an inverter for one encoder to an inverter for another, in minutes. Knows nothing of files or decoding."""

from unembed.adaptation.adapt import ENOUGH, adapt_checkpoint
from unembed.adaptation.pairs import OwnTexts, Pairs, embed_own, embed_pairs, pair_known
from unembed.adaptation.unpaired import adapt_unpaired

__all__ = [
    "ENOUGH",
    "OwnTexts",
    "Pairs",
    "adapt_checkpoint",
    "adapt_unpaired",
    "embed_own",
    "embed_pairs",
    "pair_known",
]
