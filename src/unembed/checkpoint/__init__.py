"""A trained model on disk: ``config.json``, ``model.safetensors``, ``tokenizer.json`` and a model card."""

from unembed.checkpoint.adapted import (
    Adaptation,
    AdaptationInfo,
    checksum_of,
    open_checkpoint,
    save_adaptation,
)
from unembed.checkpoint.files import (
    Checkpoint,
    CheckpointInfo,
    load_checkpoint,
    read_info,
    read_weights,
    rename_old_weights,
    save_checkpoint,
)
from unembed.hub import DEFAULT, fetch_checkpoint, installed_inverters, push_checkpoint
from unembed.model.packing import WeightPrecision

__all__ = [
    "DEFAULT",
    "Adaptation",
    "AdaptationInfo",
    "Checkpoint",
    "CheckpointInfo",
    "WeightPrecision",
    "checksum_of",
    "fetch_checkpoint",
    "installed_inverters",
    "load_checkpoint",
    "open_checkpoint",
    "push_checkpoint",
    "read_info",
    "read_weights",
    "rename_old_weights",
    "save_adaptation",
    "save_checkpoint",
]
