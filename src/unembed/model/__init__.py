"""The conditional masked diffusion language model: denoiser, readout, noise and loss."""

from unembed.model.choice import Choice, choose_likeliest
from unembed.model.loss import Objective
from unembed.model.mdlm import Condition, ConditionalMDLM
from unembed.model.ngrams import NGrams
from unembed.model.noise import NoiseSchedule
from unembed.model.writer import Writing

__all__ = [
    "Choice",
    "Condition",
    "ConditionalMDLM",
    "NGrams",
    "NoiseSchedule",
    "Objective",
    "Writing",
    "choose_likeliest",
]
