"""Known text with slots: which candidates stand in them, given the vector of the whole text."""

from unembed.filling.filler import CALLS, Answer, Filler, Filling, GivenCandidates, choose_candidates
from unembed.filling.ranking import FillingTools
from unembed.filling.template import Template

__all__ = ["CALLS", "Answer", "Filler", "Filling", "FillingTools", "GivenCandidates", "Template", "choose_candidates"]
