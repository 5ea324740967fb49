"""Saves and loads a checkpoint folder. Safetensors and JSON only; knows nothing of hubs or decoding."""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, ValidationError
from safetensors import SafetensorError
from safetensors.torch import load_file, save
from tokenizers import Tokenizer

from unembed._version import __version__
from unembed.canvas import CanvasVocabulary, tokenizer_hash
from unembed.checkpoint.card import model_card
from unembed.config import ModelConfig, NoiseConfig
from unembed.encoders import EncoderDescription
from unembed.errors import CheckpointError
from unembed.files import write_bytes, write_json, write_text
from unembed.model import ConditionalMDLM
from unembed.model.packing import Precision, pack, unpack
from unembed.store import Fingerprint, Manifest

CONFIG_FILE = "config.json"
WEIGHTS_FILE = "model.safetensors"
TOKENIZER_FILE = "tokenizer.json"
CARD_FILE = "README.md"


class CheckpointInfo(BaseModel):
    """What a model is, which encoder's vectors it reads, and how it came about."""

    model_config = ConfigDict(frozen=True, extra="forbid", protected_namespaces=())

    format: Literal["unembed-1"] = "unembed-1"
    unembed_version: str = __version__
    encoder: EncoderDescription
    model: ModelConfig
    noise: NoiseConfig
    special_ids: tuple[int, ...]
    tokenizer_hash: str
    training_rows: int
    fingerprint: Fingerprint | None = None
    """What the training vectors looked like; None in checkpoints of earlier versions."""
    metrics: dict[str, Any] = {}

    @classmethod
    def for_store(
        cls, manifest: Manifest, model: ModelConfig, noise: NoiseConfig, metrics: dict[str, Any] | None = None
    ) -> "CheckpointInfo":
        """Describe a model that was trained on a store."""
        return cls(
            encoder=manifest.encoder,
            model=model,
            noise=noise,
            special_ids=manifest.special_ids,
            tokenizer_hash=manifest.tokenizer_hash,
            training_rows=manifest.rows,
            fingerprint=manifest.fingerprint,
            metrics=metrics or {},
        )

    @property
    def vocabulary(self) -> CanvasVocabulary:
        """The ids that the model's canvases hold."""
        return CanvasVocabulary(self.model.vocabulary_size or 0, self.special_ids)


@dataclass(frozen=True)
class Checkpoint:
    """A loaded checkpoint."""

    model: ConditionalMDLM
    tokenizer: Tokenizer
    info: CheckpointInfo


def save_checkpoint(folder: Path, checkpoint: Checkpoint, precision: Precision = "float32") -> None:
    """Write a checkpoint folder, file by file, the weights last.

    Each file is replaced whole. A kill in between leaves weights that do not belong to their config, which loading
    notices; within a training run, where the config stays the same, it leaves a checkpoint that works.
    """
    weights = pack({name: part.detach().cpu() for name, part in checkpoint.model.state_dict().items()}, precision)
    facts = checkpoint.info.model_dump(mode="json")
    write_text(folder / CARD_FILE, model_card(facts, checkpoint.model))
    write_text(folder / TOKENIZER_FILE, checkpoint.tokenizer.to_str())
    write_json(folder / CONFIG_FILE, facts)
    write_bytes(folder / WEIGHTS_FILE, save(weights, {"format": "pt"}))


def load_checkpoint(folder: Path) -> Checkpoint:
    """Load a checkpoint folder, in float32 and ready to decode."""
    missing = [name for name in (CONFIG_FILE, WEIGHTS_FILE, TOKENIZER_FILE) if not (folder / name).is_file()]
    if missing:
        raise CheckpointError(
            f"{folder} is no inverter: it has no {', '.join(missing)}.",
            "Give a folder that unembed train wrote (for example RUN/best), or a hub id.",
        )
    try:
        info = CheckpointInfo.model_validate(json.loads((folder / CONFIG_FILE).read_text(encoding="utf-8")))
    except (ValidationError, ValueError) as error:
        raise CheckpointError(
            f"{folder / CONFIG_FILE} is not the configuration of an unembed inverter of this version.",
            "Was it written by another program, or by another version of unembed? It must say format: unembed-1.",
        ) from error
    model = ConditionalMDLM(info.model, info.vocabulary)
    try:
        model.load_state_dict(unpack(load_file(folder / WEIGHTS_FILE)))
        tokenizer = Tokenizer.from_file(str(folder / TOKENIZER_FILE))
    except (SafetensorError, OSError) as error:
        raise CheckpointError(
            f"{folder / WEIGHTS_FILE} is truncated or not a safetensors file: {error}.", "Copy or download it again."
        ) from error
    except RuntimeError as error:
        raise CheckpointError(
            f"The weights in {folder} do not belong to its {CONFIG_FILE}.", "Copy or download the whole folder again."
        ) from error
    except Exception as error:  # tokenizers raises bare exceptions
        raise CheckpointError(f"{folder / TOKENIZER_FILE} cannot be read: {error}.", "Copy it again.") from error
    if tokenizer_hash(tokenizer) != info.tokenizer_hash:
        raise CheckpointError(
            f"{folder / TOKENIZER_FILE} is not the tokenizer that the inverter was trained with.",
            "Copy or download the whole folder again.",
        )
    return Checkpoint(model.eval(), tokenizer, info)
