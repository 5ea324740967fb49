"""From a store to a trained model: batches, optimisers, validation, resume, and the loop around them."""

from unembed.training.loop import Callbacks, TrainingResult, train

__all__ = ["Callbacks", "TrainingResult", "train"]
