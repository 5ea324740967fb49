"""A trained model on disk: ``config.json``, ``model.safetensors``, ``tokenizer.json`` and a model card."""

from unembed.checkpoint.files import (
    Checkpoint,
    CheckpointInfo,
    load_checkpoint,
    read_weights,
    rename_old_weights,
    save_checkpoint,
)
from unembed.hub import DEFAULT, fetch_checkpoint, push_checkpoint
from unembed.model.packing import WeightPrecision

__all__ = [
    "DEFAULT",
    "Checkpoint",
    "CheckpointInfo",
    "WeightPrecision",
    "fetch_checkpoint",
    "load_checkpoint",
    "push_checkpoint",
    "read_weights",
    "rename_old_weights",
    "save_checkpoint",
]
