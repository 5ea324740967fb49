"""Whether a recipe and a store belong together; if not, why, and what to do."""

from unembed.config import ModelConfig, ModelRecipe, Recipe
from unembed.errors import StoreError
from unembed.model import ConditionalMDLM
from unembed.store import Manifest


def check_pair(training: Manifest, validation: Manifest) -> None:
    """Refuse a validation store whose ids mean other tokens than those of the training store."""
    if training.tokenizer_hash != validation.tokenizer_hash:
        raise StoreError(
            "The training store and the validation store were made with different tokenizers or vocabularies.",
            "Embed the validation texts again with the tokenizer of the training store.",
        )


def check_store(recipe: Recipe, manifest: Manifest) -> None:
    """Refuse a store that was not made by the recipe's encoder, prompt and canvas."""
    prefix = "sentence-transformers/"
    pairs = {
        "encoder": (recipe.encoder.name.removeprefix(prefix), manifest.encoder.name.removeprefix(prefix)),
        "canvas_length": (recipe.data.canvas_length, manifest.canvas_length),
    }
    # What the recipe leaves open is taken from the store.
    if recipe.encoder.prompt is not None:
        pairs["prompt"] = (recipe.encoder.prompt, manifest.encoder.prompt)
    if recipe.encoder.revision is not None:
        pairs["revision"] = (recipe.encoder.revision, manifest.encoder.revision)
    differing = [
        f"{key} is {stored!r}, the recipe wants {wanted!r}"
        for key, (wanted, stored) in pairs.items()
        if wanted != stored
    ]
    if differing:
        raise StoreError(
            f"The store {recipe.data.store} does not fit the recipe: {'; '.join(differing)}.",
            "Change the recipe, or embed the corpus again as the recipe says.",
        )


def build_for_store(model: ModelRecipe, manifest: Manifest) -> ConditionalMDLM:
    """Build a model for a store, taking from its manifest what the recipe leaves open."""
    return ConditionalMDLM(resolve_for_store(model, manifest), manifest.vocabulary)


def resolve_for_store(model: ModelRecipe, manifest: Manifest) -> ModelConfig:
    """Fill in what a recipe leaves to the store, and refuse a recipe that contradicts it."""
    return model.resolve(
        embedding_dim=manifest.encoder.dim,
        vocabulary_size=manifest.vocabulary_size,
        canvas_length=manifest.canvas_length,
    )
