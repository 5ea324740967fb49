"""A recipe: everything that a training run needs to know; YAML in, YAML out.

A recipe (``configs/*.yaml``) has five sections: ``encoder``, ``data``, ``model``, ``noise`` and ``training``. Every key
has a default, so a recipe states only what it decides. An unknown key is an error that names the nearest valid one.
"""

import copy
import logging
from pathlib import Path
from typing import Annotated, Any, Self

import yaml
from pydantic import Field, model_validator

from unembed.config.base import Positive, Section, parse
from unembed.config.model import ModelRecipe, NoiseConfig
from unembed.config.training import TrainingConfig
from unembed.errors import ConfigError, first_line
from unembed.files import write_text
from unembed.recipes import find_recipe, name_recipes

logger = logging.getLogger(__name__)


class EncoderConfig(Section):
    """Which encoder made the vectors, and with which prompt."""

    name: str = "all-MiniLM-L6-v2"
    revision: str | None = None
    """None: the revision that the store was made with."""
    prompt: str | None = None
    """None: the prompt that the store was made with."""


class DataConfig(Section):
    """Which store is used, and which part of it."""

    store: Path = Path("work/store")
    canvas_length: Positive = 32
    validation_rows: Positive = 512
    languages: tuple[Annotated[str, Field(pattern="^[a-z]{2,3}$")], ...] = ()
    """Of the texts, as ISO 639-1 codes: the inverter says that it writes these. Empty: not known."""


class Recipe(Section):
    """Everything that ``unembed train`` needs to know."""

    encoder: EncoderConfig = EncoderConfig()
    data: DataConfig = DataConfig()
    model: ModelRecipe = ModelRecipe()
    noise: NoiseConfig = NoiseConfig()
    training: TrainingConfig = TrainingConfig()

    @model_validator(mode="after")
    def _consistent(self) -> Self:
        start, model = self.training.start_from, self.model
        if start.encoder and model.norm != "post" and model.architecture != "modernbert":
            raise ValueError(
                "training.start_from.encoder needs model.norm: post, unless model.architecture is modernbert"
            )
        if model.freeze_token_embeddings and not (start.encoder or start.inverter):
            raise ValueError(
                "model.freeze_token_embeddings needs training.start_from: random embeddings must not be frozen"
            )
        if model.writer.layers and not (self.training.writer.steps or start.inverter):
            raise ValueError("model.writer.layers needs training.writer.steps: an untrained writer cannot be used")
        return self


# Keys of earlier versions, and where they are now.
_READOUT_TRAINING = ("ridge", "rows", "steps", "batch_size", "learning_rate", "sampled_softmax", "frequent_tokens")
_MOVED: dict[tuple[str, ...], tuple[str, ...]] = {
    ("model", "initialise_from"): ("training", "start_from", "encoder"),
    ("model", "readout", "start_from"): ("training", "start_from", "readout"),
    **{("model", "readout", key): ("training", "readout", key) for key in _READOUT_TRAINING},
}


def move_old_keys(values: dict[str, Any]) -> tuple[dict[str, Any], list[str]]:
    """Convert a recipe of an earlier version, or the same sections of a checkpoint, to the current keys.

    Returns:
        The values with every moved key in its new section, and a line per key that was moved.
    """
    moved = []
    values = copy.deepcopy(values)
    training = values.get("training")
    if isinstance(training, dict) and isinstance(training.get("start_from"), str):
        training["start_from"] = {"inverter": training["start_from"]}
        moved.append("training.start_from is now training.start_from.inverter")
    elif isinstance(training, dict) and training.get("start_from") is None:
        training.pop("start_from", None)  # a run wrote every key of its recipe, also that it started from nothing
    for old, new in _MOVED.items():
        section = values
        for name in old[:-1]:
            section = section.get(name) if isinstance(section, dict) else None  # type: ignore[assignment]
        if not isinstance(section, dict) or old[-1] not in section:
            continue
        target = values
        for name in new[:-1]:
            target = target.setdefault(name, {}) if isinstance(target, dict) else None  # type: ignore[assignment]
        if isinstance(target, dict):  # else the section is no section, which is what validation will say
            target[new[-1]] = section.pop(old[-1])
            moved.append(f"{'.'.join(old)} is now {'.'.join(new)}")
    return values, moved


def load_recipe(path: str | Path) -> Recipe:
    """Read and validate a recipe: a file, or the name of one that comes with unembed."""
    path = find_recipe(path)
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(f"Cannot read the recipe {path}: {first_line(error)}.", name_recipes()) from error
    try:
        values = yaml.safe_load(text)
    except yaml.YAMLError as error:
        raise ConfigError(f"{path} is not valid YAML: {error}", name_recipes()) from error
    if not isinstance(values, dict):
        raise ConfigError(f"{path} is not a recipe.", f"A recipe has the sections {', '.join(Recipe.model_fields)}.")
    values, moved = move_old_keys(values)
    if moved:
        logger.warning("%s is a recipe of an earlier version: %s.", path, "; ".join(moved))
    return parse(Recipe, values, str(path))


def dump_recipe(recipe: Recipe, path: Path) -> None:
    """Write a recipe as YAML, every key spelled out."""
    write_text(path, yaml.safe_dump(recipe.model_dump(mode="json"), sort_keys=False, allow_unicode=True))
