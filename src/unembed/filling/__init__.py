"""Known text with slots: which candidates stand in them, given the vector of the whole text.

What needs torch is in ``unembed.filling.filler``; nothing here does.
"""

from unembed.filling.kinds import KINDS
from unembed.filling.slots import GivenCandidates, choose_candidates, read_choices
from unembed.filling.template import Template

__all__ = ["KINDS", "GivenCandidates", "Template", "choose_candidates", "read_choices"]
