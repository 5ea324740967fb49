"""Whether a recipe and a store belong together; if not, why, and what to do."""

from unembed.config import Recipe
from unembed.errors import StoreError
from unembed.store import Manifest


def check_store(recipe: Recipe, manifest: Manifest) -> None:
    """Refuse a store that was not made by the recipe's encoder, prompt and canvas."""
    wanted = {
        "encoder": recipe.encoder.name.removeprefix("sentence-transformers/"),
        "prompt": recipe.encoder.prompt,
        "canvas_length": recipe.data.canvas_length,
    }
    found = {
        "encoder": manifest.encoder.name.removeprefix("sentence-transformers/"),
        "prompt": manifest.encoder.prompt,
        "canvas_length": manifest.canvas_length,
    }
    if recipe.encoder.revision is not None:
        wanted["revision"], found["revision"] = recipe.encoder.revision, manifest.encoder.revision
    differing = [
        f"{key} is {found[key]!r}, the recipe wants {wanted[key]!r}" for key in wanted if wanted[key] != found[key]
    ]
    if differing:
        raise StoreError(
            f"The store {recipe.data.store} does not fit the recipe: {'; '.join(differing)}.",
            "Change the recipe, or embed the corpus again with what it wants.",
        )
