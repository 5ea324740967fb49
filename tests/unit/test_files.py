"""Atomic writing: the old or the new, never half of one, and nothing left behind."""

import errno
import os
import subprocess
import sys
import threading
import zlib

import pytest

from unembed import files
from unembed.errors import DiskFullError, UnembedError
from unembed.files import (
    atomic_folder,
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


class TestAtomicFolder:
    @pytest.fixture(params=["exchange", "two renames"], autouse=True)
    def way(self, request, monkeypatch):
        """Every promise holds whether or not the system can let two folders trade places."""
        if request.param == "two renames":
            monkeypatch.setattr(files, "_exchange", lambda first, second: False)
        elif not sys.platform.startswith("linux"):
            pytest.skip("Linux only")
        return request.param

    def test_a_new_folder_appears_whole(self, tmp_path):
        with atomic_folder(tmp_path / "new") as temporary:
            (temporary / "sub").mkdir()
            (temporary / "sub" / "file").write_text("text")
            assert not (tmp_path / "new").exists()
        assert (tmp_path / "new" / "sub" / "file").read_text() == "text"
        assert names(tmp_path) == ["new"]

    def test_an_older_folder_is_replaced(self, tmp_path):
        for content in ("first", "second"):
            with atomic_folder(tmp_path / "run") as temporary:
                (temporary / "weights").write_text(content)
        assert (tmp_path / "run" / "weights").read_text() == "second"
        assert names(tmp_path) == ["run"]

    def test_what_else_lies_in_the_folder_stays(self, tmp_path):
        (tmp_path / "mine" / "photos").mkdir(parents=True)
        (tmp_path / "mine" / "photos" / "one.jpg").write_text("jpg")
        (tmp_path / "mine" / "weights").write_text("old")
        with atomic_folder(tmp_path / "mine") as temporary:
            (temporary / "weights").write_text("new")
        assert (tmp_path / "mine" / "photos" / "one.jpg").read_text() == "jpg"
        assert (tmp_path / "mine" / "weights").read_text() == "new"
        assert names(tmp_path) == ["mine"]

    def test_a_block_that_fails_leaves_the_old_folder_and_no_temporary(self, tmp_path):
        (tmp_path / "run").mkdir()
        (tmp_path / "run" / "weights").write_text("old")

        def write():
            with atomic_folder(tmp_path / "run") as temporary:
                (temporary / "weights").write_text("new")
                raise ValueError("stop")

        with pytest.raises(ValueError, match="stop"):
            write()
        assert (tmp_path / "run" / "weights").read_text() == "old"
        assert names(tmp_path) == ["run"]

    def test_a_full_disk_leaves_the_old_folder(self, tmp_path, monkeypatch):
        (tmp_path / "run").mkdir()
        (tmp_path / "run" / "weights").write_text("old")

        def write():
            with atomic_folder(tmp_path / "run") as temporary:
                (temporary / "weights").write_text("new")
                monkeypatch.setattr(files.os, "fsync", no_space)

        with pytest.raises(DiskFullError):
            write()
        assert (tmp_path / "run" / "weights").read_text() == "old"
        assert names(tmp_path) == ["run"]

    def test_a_file_of_that_name_is_refused_and_stays(self, tmp_path):
        (tmp_path / "run").write_text("precious")
        with pytest.raises(UnembedError, match="a file, not a folder"), atomic_folder(tmp_path / "run"):
            pass
        assert (tmp_path / "run").read_text() == "precious"
        assert names(tmp_path) == ["run"]

    def test_the_current_folder_is_refused_and_stays(self, tmp_path, monkeypatch):
        monkeypatch.chdir(tmp_path)
        (tmp_path / "mine").write_text("precious")
        with pytest.raises(UnembedError, match="current folder"), atomic_folder(files.Path()):
            pass
        assert names(tmp_path) == ["mine"]

    def test_a_link_to_a_folder_is_followed(self, tmp_path):
        (tmp_path / "disk" / "run").mkdir(parents=True)
        (tmp_path / "run").symlink_to(tmp_path / "disk" / "run")
        with atomic_folder(tmp_path / "run") as temporary:
            (temporary / "weights").write_text("new")
        assert (tmp_path / "run").is_symlink()
        assert (tmp_path / "disk" / "run" / "weights").read_text() == "new"
        assert names(tmp_path / "disk") == ["run"]

    def test_a_move_that_fails_half_way_is_taken_back(self, tmp_path, monkeypatch, way):
        if way == "exchange":
            pytest.skip("there is no half way")
        (tmp_path / "run").mkdir()
        (tmp_path / "run" / "weights").write_text("old")
        replace = files.Path.replace

        def replace_or_fail(self, target):
            if target == tmp_path / "run" and self.name.endswith(".tmp") and (self / "new").exists():
                raise OSError(errno.EIO, "the drive is gone")
            return replace(self, target)

        monkeypatch.setattr(files.Path, "replace", replace_or_fail)
        with pytest.raises(UnembedError, match="drive is gone"), atomic_folder(tmp_path / "run") as temporary:
            (temporary / "new").write_text("new")
        assert (tmp_path / "run" / "weights").read_text() == "old"
        assert names(tmp_path) == ["run"]


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="needs renameat2")
def test_a_reader_never_finds_a_replaced_folder_missing(tmp_path):
    target, missing, done = tmp_path / "run", [], threading.Event()

    def replace_often():
        try:
            for number in range(60):
                with atomic_folder(target) as temporary:
                    (temporary / "weights").write_text(str(number))
        finally:
            done.set()

    with atomic_folder(target) as temporary:
        (temporary / "weights").write_text("first")
    writer = threading.Thread(target=replace_often)
    writer.start()
    while not done.is_set():
        if not os.path.exists(target / "weights"):  # noqa: PTH110 - as fast as it goes
            missing.append(1)
    writer.join()
    assert not missing
    assert (target / "weights").read_text() == "59"


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
        "import os, sys, pathlib; from unembed.files import atomic_path, atomic_folder\n"
        "folder = pathlib.Path(sys.argv[1])\n"
        "with atomic_path(folder / 'file') as a, atomic_folder(folder / 'sub') as b:\n"
        "    (b / 'x').write_text('x'); os._exit(9)"
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
