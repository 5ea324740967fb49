"""Atomic file writing: a reader sees the old file or the whole new one, never half of it."""

import errno
import json
import os
import secrets
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from unembed.errors import from_os_error


@contextmanager
def atomic_path(target: Path, *, private: bool = False) -> Iterator[Path]:
    """Yield a temporary path next to ``target``; move it there when the block ends well, remove it otherwise.

    A ``private`` file can be read and written by its owner only, from its first byte on. The file's bytes are forced to
    disk before the move, so that a power cut cannot leave an empty file under the name.
    """
    try:
        path = target.resolve()  # a link stays a link
        path.parent.mkdir(parents=True, exist_ok=True)
        temporary = _temporary_beside(path)
        try:
            temporary.touch(mode=0o600 if private else 0o666, exist_ok=False)
            yield temporary
            _force_to_disk(temporary)
            temporary.replace(path)
        finally:
            temporary.unlink(missing_ok=True)
    except OSError as error:
        raise from_os_error(error, f"writing {target}") from error


def write_bytes(target: Path, data: bytes) -> None:
    """Write a binary file atomically."""
    with atomic_path(target) as temporary:
        temporary.write_bytes(data)


def write_text(target: Path, text: str, *, private: bool = False) -> None:
    """Write a text file atomically."""
    with atomic_path(target, private=private) as temporary:
        temporary.write_text(text, encoding="utf-8")


def write_json(target: Path, value: Any, *, private: bool = False) -> None:
    """Write a JSON file atomically, indented and with a final newline."""
    write_text(target, json.dumps(value, indent=2, ensure_ascii=False) + "\n", private=private)


def checksum(path: Path) -> str:
    """Return the CRC-32 of a file's bytes as eight hexadecimal digits: enough to notice damage, and fast."""
    value = 0
    with path.open("rb") as file:
        while block := file.read(1 << 20):
            value = zlib.crc32(block, value)
    return f"{value:08x}"


def remove_leftovers(folder: Path) -> None:
    """Remove temporary files that a killed process left in ``folder``; no other process may be writing there."""
    for path in folder.glob(".*.????????.tmp"):
        path.unlink(missing_ok=True)


@contextmanager
def locked_folder(folder: Path) -> Iterator[bool]:
    """Hold ``folder`` for this process and yield whether that worked; the system lets go when the process dies.

    Where folders cannot be locked (Windows, some network drives) it always works.
    """
    try:
        import fcntl
    except ImportError:
        yield True
        return
    try:
        folder.mkdir(parents=True, exist_ok=True)
        handle = os.open(folder, os.O_RDONLY)
    except OSError as error:
        raise from_os_error(error, f"opening {folder}") from error
    try:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
            free = True
        except OSError as error:
            free = error.errno not in (errno.EAGAIN, errno.EACCES)
        yield free
    finally:
        os.close(handle)


def _temporary_beside(target: Path) -> Path:
    return target.with_name(f".{target.name}.{secrets.token_hex(4)}.tmp")


def _force_to_disk(path: Path) -> None:
    # Opened for writing, without which Windows does not flush.
    with path.open("rb+") as file:
        os.fsync(file.fileno())
