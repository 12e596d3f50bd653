"""The agent's folder: private, written in one step, never through a link, and of bounded size."""

from __future__ import annotations

import os
import stat
import time
from pathlib import Path

import pytest
from compilewatch.runtime.private_files import (
    FolderError,
    base_folder,
    file_open,
    file_read,
    file_replace,
    folder_open,
    folder_trim,
    list_files,
)


def test_the_chosen_folder_comes_before_the_users_cache_and_the_home() -> None:
    assert base_folder("/kept/here", {"XDG_CACHE_HOME": "/cache"}) == Path(
        f"/kept/here/compilewatch-{os.getuid()}"
    )
    assert base_folder("", {"XDG_CACHE_HOME": "/cache"}) == Path("/cache/compilewatch")
    assert (
        base_folder("", {"XDG_CACHE_HOME": "relative"}) == Path.home() / ".cache" / "compilewatch"
    )
    assert base_folder("", {}) == Path.home() / ".cache" / "compilewatch"


def test_a_folder_and_its_files_are_readable_only_by_the_user(tmp_path: Path) -> None:
    old = os.umask(0)
    try:
        folder = folder_open(tmp_path / "deep" / "spool")
        file_replace(folder / "a.run", b"1")
    finally:
        os.umask(old)
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    assert stat.S_IMODE((folder / "a.run").stat().st_mode) == 0o600
    assert file_read(folder / "a.run", 10) == b"1"


def test_a_folder_that_others_may_write_to_or_that_is_a_link_is_refused(tmp_path: Path) -> None:
    open_to_all = tmp_path / "open"
    open_to_all.mkdir()
    open_to_all.chmod(0o777)
    with pytest.raises(FolderError, match="other users may write"):
        folder_open(open_to_all)
    (tmp_path / "link").symlink_to(tmp_path)
    with pytest.raises(FolderError, match="symbolic link"):
        folder_open(tmp_path / "link")
    (tmp_path / "file").write_text("")
    with pytest.raises(FolderError):
        folder_open(tmp_path / "file")


def test_a_file_behind_a_link_is_neither_read_nor_written(tmp_path: Path) -> None:
    secret = tmp_path / "secret"
    secret.write_bytes(b"mine")
    secret.chmod(0o600)
    link = tmp_path / "a.run"
    link.symlink_to(secret)
    with pytest.raises(OSError):
        file_read(link, 10)
    with pytest.raises(OSError):
        file_open(link, os.O_WRONLY)
    file_replace(link, b"new")
    assert secret.read_bytes() == b"mine"
    assert not link.is_symlink()
    assert link.read_bytes() == b"new"


def test_a_fifo_in_place_of_a_file_blocks_nothing(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "a.run", 0o600)
    with pytest.raises(FolderError, match="not a regular file"):
        file_read(tmp_path / "a.run", 10)


def test_a_file_that_grew_too_large_is_refused(tmp_path: Path) -> None:
    file_replace(tmp_path / "a.run", b"x" * 11)
    with pytest.raises(FolderError, match="larger than 10 bytes"):
        file_read(tmp_path / "a.run", 10)


def test_nothing_is_left_of_a_write_that_failed(tmp_path: Path) -> None:
    (tmp_path / "a.run").mkdir()
    with pytest.raises(OSError):
        file_replace(tmp_path / "a.run", b"1")
    assert [entry.name for entry in tmp_path.iterdir()] == ["a.run"]


def test_the_oldest_files_are_removed_to_make_space(tmp_path: Path) -> None:
    for number in range(6):
        file_replace(tmp_path / f"{number}.run", b"x" * 10)
        os.utime(tmp_path / f"{number}.run", (number, number))
    (tmp_path / "other.txt").write_text("stays")
    assert folder_trim(tmp_path, ".run", max_files=4, max_bytes=1000) == 2
    assert folder_trim(tmp_path, ".run", max_files=4, max_bytes=25) == 2
    assert [kept.path.name for kept in list_files(tmp_path, ".run")] == ["4.run", "5.run"]
    assert (tmp_path / "other.txt").exists()


def test_files_that_a_killed_writer_left_are_removed_after_a_while(tmp_path: Path) -> None:
    for name, age in ((".a.run.1.beef.unfinished", 3600), (".b.run.2.beef.unfinished", 1)):
        (tmp_path / name).write_bytes(b"half")
        os.utime(tmp_path / name, (time.time() - age,) * 2)
    folder_trim(tmp_path, ".run", max_files=4, max_bytes=1000)
    assert [entry.name for entry in tmp_path.iterdir()] == [".b.run.2.beef.unfinished"]
