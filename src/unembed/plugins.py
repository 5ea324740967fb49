"""Encoders and connectors of other packages, found by their entry points. Knows nothing of what they do."""

from importlib.metadata import EntryPoint, entry_points
from typing import Any

from unembed.errors import UnembedError, first_line

ENCODERS = "unembed.encoders"
CONNECTORS = "unembed.connectors"


def plugin_names(group: str) -> list[str]:
    """Return the names that installed packages offer in a group; imports none of them."""
    return sorted({point.name for point in entry_points(group=group)})


def load_plugin(group: str, name: str) -> Any:
    """Import what a package offers under a name; None if no package does.

    Raises:
        UnembedError: two packages offer the name, or the one that does cannot be imported.
    """
    points = list(entry_points(group=group, name=name))
    if not points:
        return None
    packages = sorted({_package(point) for point in points})
    if len(packages) > 1:
        raise UnembedError(
            f"Several packages offer '{name}' ({group}): {', '.join(packages)}.", "Uninstall all but one of them."
        )
    try:
        return points[0].load()
    except Exception as error:  # whatever the import of a foreign package raises
        raise UnembedError(
            f"'{name}' of the package {packages[0]} cannot be loaded: {first_line(error)}",
            "Update the package, or uninstall it.",
        ) from error


def _package(point: EntryPoint) -> str:
    return point.dist.name if point.dist else "unknown"
