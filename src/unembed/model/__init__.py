"""The conditional masked diffusion language model: denoiser, readout, noise and loss."""

from unembed.model.loss import Objective
from unembed.model.mdlm import Condition, ConditionalMDLM
from unembed.model.noise import NoiseSchedule

__all__ = ["Condition", "ConditionalMDLM", "NoiseSchedule", "Objective"]
