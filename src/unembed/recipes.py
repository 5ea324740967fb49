"""The recipes that come with unembed. Knows where they are, not what they say."""

from pathlib import Path

from unembed.errors import ConfigError

_PACKAGE = Path(__file__).parent
_INSTALLED = _PACKAGE / "configs"  # put there when the wheel is built
_CHECKOUT = _PACKAGE.parent.parent / "configs"


def recipes_folder() -> Path:
    """Return the folder of the recipes that come with unembed, in an installed package or in a checkout."""
    return _INSTALLED if _INSTALLED.is_dir() else _CHECKOUT


def find_recipe(name: str | Path) -> Path:
    """Return the file of a recipe: a path, or one that comes with unembed (``tiny`` or ``configs/tiny.yaml``)."""
    path = Path(name)
    if path.is_file():
        return path
    included = recipes_folder() / f"{path.stem}.yaml"
    if path.suffix in ("", ".yaml") and str(path.parent) in (".", "configs") and included.is_file():
        return included
    raise ConfigError(f"Cannot read the recipe {name}: there is no such file.", name_recipes())


def name_recipes() -> str:
    """Return a sentence that says which recipes there are to start from."""
    folder = recipes_folder()
    return f"Recipes to start from, in {folder}: {', '.join(sorted(path.stem for path in folder.glob('*.yaml')))}."
