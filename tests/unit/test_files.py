"""Atomic writing: the old or the new, never half of one, and nothing left behind."""

import errno
import os
import subprocess
import sys
import zlib

import pytest

from unembed import files
from unembed.errors import DiskFullError, UnembedError
from unembed.files import (
    atomic_path,
    checksum,
    locked_folder,
    remove_leftovers,
    write_json,
    write_text,
)


def names(folder):
    return sorted(path.name for path in folder.iterdir())


def no_space(*_, **__):
    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


class TestAtomicPath:
    def test_a_block_that_ends_well_makes_the_file_and_its_folders(self, tmp_path):
        with atomic_path(tmp_path / "a" / "b" / "file.txt") as temporary:
            temporary.write_text("new")
            assert not (tmp_path / "a" / "b" / "file.txt").exists()
        assert (tmp_path / "a" / "b" / "file.txt").read_text() == "new"
        assert names(tmp_path / "a" / "b") == ["file.txt"]

    @pytest.mark.parametrize("failure", [ValueError, KeyboardInterrupt, OSError])
    def test_a_block_that_fails_leaves_the_old_file_and_no_temporary(self, tmp_path, failure):
        target = tmp_path / "file.txt"
        target.write_text("old")

        def write():
            with atomic_path(target) as temporary:
                temporary.write_text("half of the n")
                raise failure

        with pytest.raises((ValueError, KeyboardInterrupt, UnembedError)):
            write()
        assert target.read_text() == "old"
        assert names(tmp_path) == ["file.txt"]

    @pytest.mark.parametrize("call", ["fsync", "open"])
    def test_a_full_disk_is_named_and_costs_nothing(self, tmp_path, monkeypatch, call):
        target = tmp_path / "file.txt"
        target.write_text("old")
        if call == "fsync":
            monkeypatch.setattr(files.os, "fsync", no_space)
        else:
            monkeypatch.setattr(files.Path, "write_text", no_space)
        with pytest.raises(DiskFullError, match=r"file\.txt") as caught:
            write_text(target, "new")
        assert "Free some space" in caught.value.remedy
        monkeypatch.undo()
        assert target.read_text() == "old"
        assert names(tmp_path) == ["file.txt"]

    def test_a_place_that_cannot_be_written_is_named(self, tmp_path):
        (tmp_path / "file").write_text("")
        with pytest.raises(UnembedError, match="writing .*below") as caught:
            write_text(tmp_path / "file" / "below", "text")
        assert "Check the path" in caught.value.remedy

    def test_a_folder_in_the_way_is_an_error_and_stays(self, tmp_path):
        (tmp_path / "target").mkdir()
        with pytest.raises(UnembedError, match="writing"):
            write_text(tmp_path / "target", "text")
        assert names(tmp_path) == ["target"]

    def test_a_file_gets_the_permissions_that_the_user_wants_for_new_files(self, tmp_path):
        before = os.umask(0o077)
        try:
            write_text(tmp_path / "private", "text")
            os.umask(0o022)
            write_text(tmp_path / "public", "text")
        finally:
            os.umask(before)
        assert (tmp_path / "private").stat().st_mode & 0o777 == 0o600
        assert (tmp_path / "public").stat().st_mode & 0o777 == 0o644

    def test_a_link_stays_a_link(self, tmp_path):
        (tmp_path / "elsewhere").mkdir()
        (tmp_path / "link").symlink_to(tmp_path / "elsewhere" / "real")
        write_text(tmp_path / "link", "text")
        assert (tmp_path / "link").is_symlink()
        assert (tmp_path / "elsewhere" / "real").read_text() == "text"

    def test_json_is_written_as_it_reads(self, tmp_path):
        write_json(tmp_path / "x.json", {"name": "Zoë"})
        assert (tmp_path / "x.json").read_text(encoding="utf-8") == '{\n  "name": "Zoë"\n}\n'


def test_the_checksum_is_the_crc_of_all_bytes(tmp_path):
    content = bytes(range(256)) * 5000  # more than one block
    (tmp_path / "file").write_bytes(content)
    assert checksum(tmp_path / "file") == f"{zlib.crc32(content):08x}"
    (tmp_path / "file").write_bytes(content[:-1] + b"\0")
    assert checksum(tmp_path / "file") != f"{zlib.crc32(content):08x}"
    (tmp_path / "empty").write_bytes(b"")
    assert checksum(tmp_path / "empty") == "00000000"


def test_leftovers_of_a_kill_are_removed_and_nothing_else(tmp_path):
    kill = (
        "import os, sys, pathlib; from unembed.files import atomic_path\n"
        "folder = pathlib.Path(sys.argv[1])\n"
        "with atomic_path(folder / 'one') as one, atomic_path(folder / 'two'):\n"
        "    one.write_text('x'); os._exit(9)"
    )
    subprocess.run([sys.executable, "-c", kill, str(tmp_path)], check=False)
    assert len(names(tmp_path)) == 2
    (tmp_path / "keep.tmp").write_text("mine")
    (tmp_path / ".keep").write_text("mine")
    (tmp_path / ".editor.tmp").write_text("mine")
    remove_leftovers(tmp_path)
    assert names(tmp_path) == [".editor.tmp", ".keep", "keep.tmp"]


@pytest.mark.skipif(sys.platform == "win32", reason="folders cannot be locked there")
def test_a_folder_is_locked_for_one_at_a_time_and_freed_at_the_end(tmp_path):
    with locked_folder(tmp_path / "store") as first, locked_folder(tmp_path / "store") as second:
        assert (first, second) == (True, False)
    with locked_folder(tmp_path / "store") as again:
        assert again
    assert names(tmp_path / "store") == []


def test_a_drive_without_locks_can_still_be_used(tmp_path, monkeypatch):
    fcntl = pytest.importorskip("fcntl")

    def cannot(*_):
        raise OSError(errno.ENOLCK, "no locks here")

    monkeypatch.setattr(fcntl, "flock", cannot)
    with locked_folder(tmp_path) as free:
        assert free
