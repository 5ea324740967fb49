"""Atomic file writing: a reader sees the old file or the whole new one, never half of it."""

import json
import os
import shutil
import tempfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from unembed.errors import from_os_error


@contextmanager
def atomic_path(target: Path) -> Iterator[Path]:
    """Yield a temporary path beside ``target``; move it there when the block ends well, remove it otherwise.

    The file's bytes are forced to disk before the move, so that a power cut cannot leave an empty file under the name.
    """
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        handle, name = tempfile.mkstemp(prefix=f".{target.name}.", suffix=".tmp", dir=target.parent)
        os.close(handle)
        temporary = Path(name)
        try:
            yield temporary
            _force_to_disk(temporary)
            temporary.chmod(0o644)
            temporary.replace(target)
        finally:
            temporary.unlink(missing_ok=True)
    except OSError as error:
        raise from_os_error(error, f"writing {target}") from error


@contextmanager
def atomic_folder(target: Path) -> Iterator[Path]:
    """Yield a temporary folder beside ``target``; it replaces ``target`` when the block ends well."""
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        temporary = Path(tempfile.mkdtemp(prefix=f".{target.name}.", suffix=".tmp", dir=target.parent))
        try:
            yield temporary
            for path in temporary.rglob("*"):
                if path.is_file():
                    _force_to_disk(path)
            temporary.chmod(0o755)
            if target.exists():
                previous = Path(tempfile.mkdtemp(prefix=f".{target.name}.", suffix=".old", dir=target.parent))
                target.replace(previous / target.name)
                temporary.replace(target)
                shutil.rmtree(previous)
            else:
                temporary.replace(target)
        finally:
            shutil.rmtree(temporary, ignore_errors=True)
    except OSError as error:
        raise from_os_error(error, f"writing {target}") from error


def write_text(target: Path, text: str) -> None:
    """Write a text file atomically."""
    with atomic_path(target) as temporary:
        temporary.write_text(text, encoding="utf-8")


def write_json(target: Path, value: Any) -> None:
    """Write a JSON file atomically, indented and with a final newline."""
    write_text(target, json.dumps(value, indent=2, ensure_ascii=False) + "\n")


def checksum(path: Path) -> str:
    """Return the CRC-32 of a file's bytes as eight hexadecimal digits: enough to notice damage, and fast."""
    value = 0
    with path.open("rb") as file:
        while block := file.read(1 << 20):
            value = zlib.crc32(block, value)
    return f"{value:08x}"


def remove_leftovers(folder: Path) -> None:
    """Remove temporary files that a killed process left in ``folder``."""
    for path in folder.glob(".*.tmp"):
        if path.is_dir():
            shutil.rmtree(path, ignore_errors=True)
        else:
            path.unlink(missing_ok=True)


def _force_to_disk(path: Path) -> None:
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
