"""An adapted inverter on disk: a map to the vectors of its base inverter's encoder, and what was tuned of the base.

``config.json`` and ``adaptation.safetensors``; the base stays where it is and is named. Knows nothing of how maps are
found.
"""

import json
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, ValidationError
from safetensors import SafetensorError
from safetensors.torch import load_file, save
from torch import Tensor

from unembed._version import __version__
from unembed.alignment import SpaceMap
from unembed.checkpoint.card import adapted_card
from unembed.checkpoint.files import CARD_FILE, CONFIG_FILE, WEIGHTS_FILE, Checkpoint, load_checkpoint
from unembed.encoders import EncoderDescription
from unembed.errors import CheckpointError, first_line
from unembed.files import checksum, write_bytes, write_json, write_text
from unembed.hub import fetch_checkpoint
from unembed.model.packing import pack, unpack
from unembed.store import Fingerprint

FORMAT = "unembed-adapted-1"
ADAPTATION_FILE = "adaptation.safetensors"
_TUNED = "tuned."


class AdaptationInfo(BaseModel):
    """Which encoder's vectors an adapted inverter reads, by which base, and how well that may be expected to work."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    format: Literal["unembed-adapted-1"] = "unembed-adapted-1"
    unembed_version: str = __version__
    base: str
    """The base inverter: the name of an installed one, a folder, or a hub id."""
    base_checksum: str
    """Of the base's weights."""
    encoder: EncoderDescription
    """The encoder whose vectors it reads."""
    fingerprint: Fingerprint | None
    method: str
    """How the map was found."""
    pairs: int
    """Texts whose vectors by both encoders were known; 0 if none were."""
    others: int = 0
    """Further texts, whose vectors by the base's encoder alone were known."""
    texts: str
    """Where these texts came from."""
    width: int = 0
    """Of the hidden layer of the map's correction; 0 without one."""
    metrics: dict[str, float]
    """What was measured on held-out pairs."""


@dataclass(frozen=True)
class Adaptation:
    """What turns an inverter into one for another encoder."""

    info: AdaptationInfo
    there: SpaceMap
    """From the vectors of the other encoder to those of the base's."""
    back: SpaceMap
    tuned: dict[str, Tensor]
    """Weights of the base that were tuned, by their names in the model."""

    def apply(self, base: Checkpoint) -> Checkpoint:
        """Return a checkpoint for the other encoder; the base's model is changed."""
        base.model.load_state_dict(self.tuned, strict=False)
        theirs = {"encoder": self.info.encoder, "fingerprint": self.info.fingerprint, "metrics": self.info.metrics}
        return replace(base, info=base.info.model_copy(update=theirs), adaptation=self)


def save_adaptation(folder: Path, adaptation: Adaptation) -> None:
    """Write an adapted inverter's folder, the weights last."""
    weights = {
        f"{part}.{name}": weight
        for part, space_map in (("there", adaptation.there), ("back", adaptation.back))
        for name, weight in space_map.state_dict().items()
    }
    weights |= {_TUNED + name: weight for name, weight in adaptation.tuned.items()}
    facts = adaptation.info.model_dump(mode="json")
    write_text(folder / CARD_FILE, adapted_card(facts))
    write_json(folder / CONFIG_FILE, facts)
    packed = pack({name: weight.detach().cpu() for name, weight in weights.items()}, "compact", (f"{_TUNED}*",))
    write_bytes(folder / ADAPTATION_FILE, save(packed, {"format": "pt"}))


def open_checkpoint(folder: Path) -> Checkpoint:
    """Load an inverter's folder: a trained one, or an adapted one together with its base."""
    facts = _read_facts(folder)
    if facts is None:
        return load_checkpoint(folder)
    try:
        info = AdaptationInfo.model_validate(facts)
    except ValidationError as error:
        raise CheckpointError(
            f"{folder / CONFIG_FILE} is not the configuration of an adapted inverter of this version.",
            "Run unembed adapt again.",
        ) from error
    base_folder = fetch_checkpoint(info.base)
    base = load_checkpoint(base_folder)
    if checksum_of(base_folder) != info.base_checksum:
        raise CheckpointError(
            f"The inverter '{info.base}', on which {folder} builds, has changed since.", "Run unembed adapt again."
        )
    maps = (
        SpaceMap(info.encoder.dim, base.info.encoder.dim, info.width),
        SpaceMap(base.info.encoder.dim, info.encoder.dim),
    )
    try:
        stored = unpack(load_file(folder / ADAPTATION_FILE))
        for prefix, space_map in zip(("there.", "back."), maps, strict=True):
            space_map.load_state_dict(_behind(prefix, stored))
        return Adaptation(info, *maps, _behind(_TUNED, stored)).apply(base)
    except (SafetensorError, OSError, RuntimeError) as error:
        raise CheckpointError(
            f"{folder / ADAPTATION_FILE} is damaged or does not belong to its {CONFIG_FILE}: {first_line(error)}.",
            "Copy it again, or run unembed adapt again.",
        ) from error


def checksum_of(folder: Path) -> str:
    """Return the checksum of a trained inverter's weights."""
    return checksum(folder / WEIGHTS_FILE)


def _read_facts(folder: Path) -> dict[str, Any] | None:
    """Return an adapted inverter's configuration; None if the folder holds something else."""
    try:
        facts = json.loads((folder / CONFIG_FILE).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None
    return facts if isinstance(facts, dict) and facts.get("format") == FORMAT else None


def _behind(prefix: str, weights: dict[str, Tensor]) -> dict[str, Tensor]:
    return {name.removeprefix(prefix): weight for name, weight in weights.items() if name.startswith(prefix)}
