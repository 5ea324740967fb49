"""Saves and loads a checkpoint folder. Safetensors and JSON only; knows nothing of hubs or decoding."""

import json
from collections.abc import Collection
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from pydantic import BaseModel, ConfigDict, ValidationError
from safetensors import SafetensorError
from safetensors.torch import load_file, save
from tokenizers import Tokenizer
from torch import Tensor

from unembed._version import __version__
from unembed.canvas import CanvasVocabulary, tokenizer_hash
from unembed.checkpoint.card import model_card
from unembed.config import ModelConfig, NoiseConfig, move_old_keys
from unembed.encoders import EncoderDescription
from unembed.errors import CheckpointError, first_line
from unembed.files import write_bytes, write_json, write_text
from unembed.model import ConditionalMDLM
from unembed.model.packing import TABLES, WeightPrecision, pack, unpack
from unembed.store import Fingerprint, Manifest

if TYPE_CHECKING:
    from unembed.checkpoint.adapted import Adaptation

CONFIG_FILE = "config.json"
WEIGHTS_FILE = "model.safetensors"
TOKENIZER_FILE = "tokenizer.json"
WORDS_FILE = "words.txt"
NGRAMS_FILE = "ngrams.npz"
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
    languages: tuple[str, ...] = ()
    """Of the training texts, as ISO 639-1 codes; empty if the recipe did not name them."""
    metrics: dict[str, Any] = {}

    @classmethod
    def for_store(
        cls,
        manifest: Manifest,
        model: ModelConfig,
        noise: NoiseConfig,
        metrics: dict[str, Any] | None = None,
        languages: tuple[str, ...] = (),
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
            languages=languages,
            metrics=metrics or {},
        )

    @property
    def vocabulary(self) -> CanvasVocabulary:
        """The ids that the model's canvases hold."""
        return CanvasVocabulary(self.model.vocabulary_size, self.special_ids)


@dataclass(frozen=True)
class Checkpoint:
    """A loaded checkpoint."""

    model: ConditionalMDLM
    tokenizer: Tokenizer
    info: CheckpointInfo
    adaptation: "Adaptation | None" = None
    """What makes it read the vectors of another encoder than it was trained for."""
    known_words: tuple[str, ...] = ()
    """Words of the training texts, the commonest first; empty in checkpoints of earlier versions."""
    ngrams: bytes = b""
    """Of the training texts, as :class:`unembed.model.NGrams` writes them; empty in checkpoints of earlier versions."""


def save_checkpoint(
    folder: Path,
    checkpoint: Checkpoint,
    precision: WeightPrecision = "float32",
    in_8_bits: Collection[str] = TABLES,
) -> None:
    """Write a checkpoint folder, file by file, the weights last.

    ``in_8_bits`` names the matrices that ``precision="compact"`` rounds to 8 bits (:func:`unembed.model.packing.pack`).
    Each file is replaced whole. A kill in between leaves weights that do not belong to their config, which loading
    notices; within a training run, where the config stays the same, it leaves a checkpoint that works.
    """
    state = {name: part.detach().cpu() for name, part in checkpoint.model.state_dict().items()}
    weights = pack(state, precision, in_8_bits)
    facts = checkpoint.info.model_dump(mode="json")
    write_text(folder / CARD_FILE, model_card(facts, checkpoint.model))
    write_text(folder / TOKENIZER_FILE, checkpoint.tokenizer.to_str())
    if checkpoint.known_words:
        write_text(folder / WORDS_FILE, "".join(f"{word}\n" for word in checkpoint.known_words))
    if checkpoint.ngrams:
        write_bytes(folder / NGRAMS_FILE, checkpoint.ngrams)
    write_json(folder / CONFIG_FILE, facts)
    write_bytes(folder / WEIGHTS_FILE, save(weights, {"format": "pt"}))


def load_checkpoint(folder: Path) -> Checkpoint:
    """Load a checkpoint folder, in float32 and ready to decode."""
    missing = [name for name in (CONFIG_FILE, WEIGHTS_FILE, TOKENIZER_FILE) if not (folder / name).is_file()]
    if missing:
        raise CheckpointError(
            f"{folder} is not an inverter: it has no {', '.join(missing)}.",
            "Give a folder that unembed train wrote (for example RUN/best), a hub id, or a name that unembed inverters "
            "lists.",
        )
    info = read_info(folder)
    model = ConditionalMDLM(info.model, info.vocabulary)
    weights = read_weights(folder)
    try:
        model.load_state_dict(weights)
        tokenizer = Tokenizer.from_file(str(folder / TOKENIZER_FILE))
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
    ngrams = folder / NGRAMS_FILE
    return Checkpoint(
        model.eval(),
        tokenizer,
        info,
        known_words=_read_words(folder / WORDS_FILE),
        ngrams=ngrams.read_bytes() if ngrams.is_file() else b"",
    )


def read_info(folder: Path) -> CheckpointInfo:
    """Read what a checkpoint folder says about its model, without the weights."""
    try:
        return CheckpointInfo.model_validate(_read_config(folder / CONFIG_FILE))
    except (OSError, ValidationError, ValueError) as error:
        raise CheckpointError(
            f"{folder / CONFIG_FILE} is not the configuration of an unembed inverter of this version.",
            "Was it written by another program, or by another version of unembed? It must say format: unembed-1.",
        ) from error


# Weights whose names have changed.
_RENAMED = {"denoiser.places.bias.weight": "denoiser.positions.bias.weight"}


def rename_old_weights(weights: dict[str, Tensor], prefix: str = "") -> dict[str, Tensor]:
    """Return weights by their names of today; what earlier versions wrote may have other names behind ``prefix``."""
    renamed = {prefix + old: prefix + new for old, new in _RENAMED.items()}
    return {renamed.get(name, name): weight for name, weight in weights.items()}


def read_weights(folder: Path) -> dict[str, Tensor]:
    """Read the weights of an inverter's folder, in float32 and by their names of today."""
    path = folder / WEIGHTS_FILE
    if not path.is_file():
        raise CheckpointError(
            f"{folder} holds no inverter: it has no {WEIGHTS_FILE}.",
            "Give the folder of an inverter, such as work/run/best.",
        )
    try:
        stored = load_file(path)
    except (SafetensorError, OSError) as error:
        raise CheckpointError(
            f"{path} is truncated or not a safetensors file: {first_line(error)}.", "Copy or download it again."
        ) from error
    return rename_old_weights(unpack(stored))


def _read_words(path: Path) -> tuple[str, ...]:
    """Read the words of the training texts; none where there is no such file."""
    try:
        return tuple(path.read_text(encoding="utf-8").split()) if path.is_file() else ()
    except (OSError, UnicodeDecodeError) as error:
        raise CheckpointError(f"{path} cannot be read: {first_line(error)}.", "Copy it again.") from error


def _read_config(path: Path) -> Any:
    """Read a configuration; what earlier versions kept there about the training is left out."""
    facts = json.loads(path.read_text(encoding="utf-8"))
    if isinstance(facts, dict):
        facts, _ = move_old_keys(facts)
        facts.pop("training", None)
    return facts
