"""Encoders, connectors and inverters of other packages, found by their entry points. Knows nothing of what they do."""

from importlib.metadata import EntryPoint, entry_points
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from unembed.errors import UnembedError, first_line

ENCODERS = "unembed.encoders"
CONNECTORS = "unembed.connectors"
INVERTERS = "unembed.inverters"


def plugin_names(group: str) -> list[str]:
    """Return the names that installed packages offer in a group; imports none of them."""
    return sorted({point.name for point in entry_points(group=group)})


def load_plugin(group: str, name: str) -> Any:
    """Import what a package offers under a name; None if no package does.

    Raises:
        UnembedError: two packages offer the name, or the one that does cannot be imported.
    """
    point = _find(group, name)
    if point is None:
        return None
    try:
        return point.load()
    except Exception as error:  # whatever the import of a foreign package raises
        raise UnembedError(
            f"'{name}' of the package {_package(point)} cannot be loaded: {first_line(error)}",
            "Update the package, or uninstall it.",
        ) from error


def plugin_folder(group: str, name: str) -> Path | None:
    """Return the folder of the Python package that an entry point names; None if no package offers the name.

    The folder is for reading files: the package itself is not imported.

    Raises:
        UnembedError: two packages offer the name, or the one that does has no such folder.
    """
    point = _find(group, name)
    if point is None:
        return None
    try:
        spec = find_spec(point.module)
    except (ImportError, ValueError):
        spec = None
    locations = list(spec.submodule_search_locations or ()) if spec else []
    if not locations or not Path(locations[0]).is_dir():
        raise UnembedError(
            f"'{name}' should be in the folder of {point.module}, from the package {_package(point)}, but there is no "
            "such folder.",
            f"Install {_package(point)} again, or uninstall it.",
        )
    return Path(locations[0])


def plugin_package(group: str, name: str) -> str:
    """Return the name and the version of the package that offers a name."""
    point = _find(group, name)
    return f"{point.dist.name} {point.dist.version}" if point and point.dist else "unknown"


def _find(group: str, name: str) -> EntryPoint | None:
    points = list(entry_points(group=group, name=name))
    packages = sorted({_package(point) for point in points})
    if len(packages) > 1:
        raise UnembedError(
            f"Several packages offer '{name}' ({group}): {', '.join(packages)}.", "Uninstall all but one of them."
        )
    return points[0] if points else None


def _package(point: EntryPoint) -> str:
    return point.dist.name if point.dist else "unknown"
