"""Maps between the spaces of two encoders: what they are, and how they are found. Knows nothing of inverters."""

from unembed.alignment.maps import SpaceMap
from unembed.alignment.paired import LEAST_PAIRS, PairedFit, fit_pairs, imitate
from unembed.alignment.unpaired import UnpairedAlignment, align_unpaired

__all__ = ["LEAST_PAIRS", "PairedFit", "SpaceMap", "UnpairedAlignment", "align_unpaired", "fit_pairs", "imitate"]
