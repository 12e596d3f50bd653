"""The agent's own folder on disk: only this user's, never reached through a link, bounded in files and bytes."""

from __future__ import annotations

import os
import stat
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import NamedTuple

from compilewatch.errors import AgentError

FOLDER_MODE, FILE_MODE = 0o700, 0o600
_UNFINISHED, _UNFINISHED_SECONDS = ".unfinished", 600.0
_NEVER_THROUGH_A_LINK = (
    getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_NONBLOCK", 0)
)


class FolderError(AgentError, OSError):
    """A folder or file of the agent's is not there, or is not this user's alone; the text is one sentence."""


class Kept(NamedTuple):
    """A file in the folder: its path, its size in bytes, and when it was last written in Unix seconds."""

    path: Path
    size: int
    written: float


def base_folder(chosen: str = "", environ: Mapping[str, str] | None = None) -> Path:
    """Where the agent keeps files: this user's part of the chosen folder, which may be everybody's, else `compilewatch` in the user's
    cache folder. Nothing is made; raises a FolderError where the user has no home."""
    environ = os.environ if environ is None else environ
    if chosen:
        return Path(chosen) / (
            f"compilewatch-{os.getuid()}" if hasattr(os, "getuid") else "compilewatch"
        )
    cache = environ.get("XDG_CACHE_HOME", "")
    if Path(
        cache
    ).is_absolute():  # a relative one is to be ignored, says the standard that names the variable
        return Path(cache) / "compilewatch"
    try:
        return Path.home() / ".cache" / "compilewatch"
    except (RuntimeError, KeyError):
        raise FolderError("there is no home folder to keep files in") from None


def folder_open(path: Path) -> Path:
    """The folder, made if it is not there; raises a FolderError unless it is a folder that this user owns and nobody else writes to."""
    try:
        path.mkdir(mode=FOLDER_MODE, parents=True, exist_ok=True)
        found = path.lstat()
    except OSError as error:
        raise FolderError(f"cannot make the folder: {error.strerror or error}") from None
    if not stat.S_ISDIR(found.st_mode):
        raise FolderError("the folder is a link or no folder")
    _check_owner(found, "the folder")
    return path


def file_open(path: Path, flags: int) -> int:
    """A descriptor of a plain file of this user's, made with mode 0600 where `flags` say so; a link is refused. Raises OSError."""
    descriptor = os.open(path, flags | _NEVER_THROUGH_A_LINK, FILE_MODE)
    try:
        found = os.fstat(descriptor)
        if not stat.S_ISREG(found.st_mode):
            raise FolderError("the file is no plain file")
        _check_owner(found, "the file")
    except BaseException:
        os.close(descriptor)
        raise
    return descriptor


def file_read(path: Path, limit: int) -> bytes:
    """The file's bytes; raises a FolderError if there are more than `limit`, OSError if it cannot be read."""
    with os.fdopen(file_open(path, os.O_RDONLY), "rb") as file:
        data = file.read(limit + 1)
    if len(data) > limit:
        raise FolderError(f"the file is larger than {limit} bytes")
    return data


def file_replace(path: Path, data: bytes) -> None:
    """Writes the file in one step: whoever reads it meets the old bytes or the new ones. Raises OSError."""
    made = path.with_name(f".{path.name}.{os.getpid()}.{os.urandom(4).hex()}{_UNFINISHED}")
    try:
        with os.fdopen(file_open(made, os.O_WRONLY | os.O_CREAT | os.O_EXCL), "wb") as file:
            file.write(data)
        made.replace(path)
    except BaseException:
        made.unlink(missing_ok=True)
        raise


def files_kept(folder: Path, suffix: str) -> list[Kept]:
    """The plain files that end like this, the oldest first; one that vanishes meanwhile is left out. Raises OSError."""
    return sorted(_plain_files(folder, suffix), key=lambda kept: (kept.written, kept.path.name))


def _plain_files(folder: Path, suffix: str) -> Iterator[Kept]:
    with os.scandir(folder) as entries:
        for entry in entries:
            try:
                found = entry.stat(follow_symlinks=False)
            except OSError:
                continue
            if entry.name.endswith(suffix) and stat.S_ISREG(found.st_mode):
                yield Kept(Path(entry.path), found.st_size, found.st_mtime)


def folder_trim(folder: Path, suffix: str, max_files: int, max_bytes: int) -> int:
    """Removes the oldest files that end like this until the rest is within both limits; answers how many went. What processes that
    were killed while they wrote left behind goes too. Raises OSError."""
    for left in files_kept(folder, _UNFINISHED):
        if left.written < time.time() - _UNFINISHED_SECONDS:
            left.path.unlink(missing_ok=True)
    kept = files_kept(folder, suffix)
    size, removed = sum(file.size for file in kept), 0
    for file in kept:
        if len(kept) - removed <= max_files and size <= max_bytes:
            break
        file.path.unlink(missing_ok=True)
        size -= file.size
        removed += 1
    return removed


def _check_owner(found: os.stat_result, what: str) -> None:
    if not hasattr(os, "getuid"):
        return
    if found.st_uid != os.getuid():
        raise FolderError(f"{what} belongs to another user")
    if found.st_mode & (stat.S_IWGRP | stat.S_IWOTH):
        raise FolderError(f"others may write to {what}")
