"""Private files: a folder of the current user only, without symbolic links, bounded in files and
bytes.
"""

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
    """A folder or file of the agent is missing, or other users can access it; the text is one
    sentence.
    """


class StoredFile(NamedTuple):
    """A file in the folder: path, size in bytes, and time of the last write in Unix seconds."""

    path: Path
    size: int
    modified_at: float


def base_folder(chosen: str = "", environ: Mapping[str, str] | None = None) -> Path:
    """Returns the agent's folder: a subfolder per user of the configured folder, which may be
    shared, else `compilewatch` in the user's cache folder.

    Creates nothing. Raises FolderError if the user has no home folder.
    """
    environ = os.environ if environ is None else environ
    if chosen:
        return Path(chosen) / (
            f"compilewatch-{os.getuid()}" if hasattr(os, "getuid") else "compilewatch"
        )
    cache = environ.get("XDG_CACHE_HOME", "")
    if Path(cache).is_absolute():  # the XDG specification ignores relative paths
        return Path(cache) / "compilewatch"
    try:
        return Path.home() / ".cache" / "compilewatch"
    except (RuntimeError, KeyError):
        raise FolderError("there is no home folder for the agent's files") from None


def folder_open(path: Path) -> Path:
    """Opens or creates the folder.

    Raises FolderError unless this user owns the folder and no other user can write to it.
    """
    try:
        path.mkdir(mode=FOLDER_MODE, parents=True, exist_ok=True)
        status = path.lstat()
    except OSError as error:
        raise FolderError(f"cannot create the folder: {error.strerror or error}") from None
    if not stat.S_ISDIR(status.st_mode):
        raise FolderError("the path is not a folder, or is a symbolic link")
    _check_owner(status, "the folder")
    return path


def file_open(path: Path, flags: int) -> int:
    """Opens a regular file of this user and returns the descriptor; creates it with mode 0600 if
    `flags` ask for it.

    Refuses symbolic links. Raises OSError.
    """
    descriptor = os.open(path, flags | _NEVER_THROUGH_A_LINK, FILE_MODE)
    try:
        status = os.fstat(descriptor)
        if not stat.S_ISREG(status.st_mode):
            raise FolderError("the file is not a regular file")
        _check_owner(status, "the file")
    except BaseException:
        os.close(descriptor)
        raise
    return descriptor


def file_read(path: Path, limit: int) -> bytes:
    """Reads the file; raises FolderError if it is larger than `limit`, OSError if it cannot be
    read.
    """
    with os.fdopen(file_open(path, os.O_RDONLY), "rb") as file:
        data = file.read(limit + 1)
    if len(data) > limit:
        raise FolderError(f"the file is larger than {limit} bytes")
    return data


def file_replace(path: Path, data: bytes) -> None:
    """Replaces the file atomically: readers see either the old or the new content.

    Raises OSError.
    """
    unfinished = path.with_name(f".{path.name}.{os.getpid()}.{os.urandom(4).hex()}{_UNFINISHED}")
    try:
        with os.fdopen(file_open(unfinished, os.O_WRONLY | os.O_CREAT | os.O_EXCL), "wb") as file:
            file.write(data)
        unfinished.replace(path)
    except BaseException:
        unfinished.unlink(missing_ok=True)
        raise


def list_files(folder: Path, suffix: str) -> list[StoredFile]:
    """Lists the regular files with this suffix, oldest first; skips files that vanish during the
    scan. Raises OSError.
    """
    return sorted(_plain_files(folder, suffix), key=lambda kept: (kept.modified_at, kept.path.name))


def _plain_files(folder: Path, suffix: str) -> Iterator[StoredFile]:
    with os.scandir(folder) as entries:
        for entry in entries:
            try:
                status = entry.stat(follow_symlinks=False)
            except OSError:
                continue
            if entry.name.endswith(suffix) and stat.S_ISREG(status.st_mode):
                yield StoredFile(Path(entry.path), status.st_size, status.st_mtime)


def folder_trim(folder: Path, suffix: str, max_files: int, max_bytes: int) -> int:
    """Removes the oldest files with this suffix until the rest is within both limits; returns the
    number removed.

    Also removes unfinished files of processes that were killed while they wrote. Raises OSError.
    """
    for unfinished in list_files(folder, _UNFINISHED):
        if unfinished.modified_at < time.time() - _UNFINISHED_SECONDS:
            unfinished.path.unlink(missing_ok=True)
    files = list_files(folder, suffix)
    size, removed = sum(file.size for file in files), 0
    for file in files:
        if len(files) - removed <= max_files and size <= max_bytes:
            break
        file.path.unlink(missing_ok=True)
        size -= file.size
        removed += 1
    return removed


def _check_owner(status: os.stat_result, noun: str) -> None:
    if not hasattr(os, "getuid"):
        return
    if status.st_uid != os.getuid():
        raise FolderError(f"{noun} belongs to another user")
    if status.st_mode & (stat.S_IWGRP | stat.S_IWOTH):
        raise FolderError(f"other users may write to {noun}")
