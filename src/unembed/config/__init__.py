"""Frozen, validated configuration of models, training and decoding. Knows nothing of torch."""

from unembed.config.base import Count, Positive, Share, parse
from unembed.config.decoding import (
    BATCHES_AT_ONCE,
    SAMPLING,
    SEARCHES,
    STRATEGIES,
    BlindStrategy,
    DecodingConfig,
    Effort,
    GuidedConfig,
    SearchStrategy,
    Strategy,
    SurrogateSearchConfig,
)
from unembed.config.model import ModelConfig, ModelRecipe, NoiseConfig, ReadoutConfig, RotaryConfig, SurrogateConfig
from unembed.config.recipe import DataConfig, EncoderConfig, Recipe, dump_recipe, load_recipe, move_old_keys
from unembed.config.training import (
    ReadoutTrainingConfig,
    SpellOutPrecision,
    StartConfig,
    SurrogateTrainingConfig,
    TrainingConfig,
)

__all__ = [
    "BATCHES_AT_ONCE",
    "SAMPLING",
    "SEARCHES",
    "STRATEGIES",
    "BlindStrategy",
    "Count",
    "DataConfig",
    "DecodingConfig",
    "Effort",
    "EncoderConfig",
    "GuidedConfig",
    "ModelConfig",
    "ModelRecipe",
    "NoiseConfig",
    "Positive",
    "ReadoutConfig",
    "ReadoutTrainingConfig",
    "Recipe",
    "RotaryConfig",
    "SearchStrategy",
    "Share",
    "SpellOutPrecision",
    "StartConfig",
    "Strategy",
    "SurrogateConfig",
    "SurrogateSearchConfig",
    "SurrogateTrainingConfig",
    "TrainingConfig",
    "dump_recipe",
    "load_recipe",
    "move_old_keys",
    "parse",
]
