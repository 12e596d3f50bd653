"""Lock file: an append-only file with one writing process.

The lock is a POSIX record lock (`fcntl.lockf`); the kernel releases it when the process ends in any
way.
"""

from __future__ import annotations

import errno
import io
import os
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path
from typing import Any, BinaryIO

from compilewatch.runtime.private_files import FolderError, file_open

try:
    import fcntl
except ImportError:  # Windows
    fcntl = None  # type: ignore[assignment]

UNFINISHED = ".unfinished"
CAN_LOCK = fcntl is not None

_open_files: set[tuple[int, str]] = set()
"""Process id and path of each open file. POSIX locks do not exclude the process that holds them."""


class LockedFile:
    """A locked file, open for reading and appending.

    A forked child inherits the descriptor without the lock and must not use it.
    """

    def __init__(self, path: Path, descriptor: int) -> None:
        status = os.fstat(descriptor)
        self.path = path
        self.size = status.st_size
        self._descriptor = descriptor
        self._file_id = status.st_dev, status.st_ino
        _open_files.add((os.getpid(), str(path)))

    @classmethod
    def create(cls, path: Path, pieces: Iterable[bytes]) -> LockedFile:
        """Creates the file with these bytes and replaces an existing one atomically.

        No other process sees the file unlocked or unfinished. Raises OSError.
        """
        unfinished = path.with_name(path.name + UNFINISHED)
        unfinished.unlink(missing_ok=True)
        descriptor = file_open(unfinished, os.O_RDWR | os.O_APPEND | os.O_CREAT | os.O_EXCL)
        try:
            _lock(descriptor)
            for piece in pieces:
                _write(descriptor, piece)
            unfinished.replace(path)
        except BaseException:
            unfinished.unlink(missing_ok=True)
            os.close(descriptor)
            raise
        return cls(path, descriptor)

    @classmethod
    def open_if_free(cls, path: Path) -> LockedFile | None:
        """Opens the file if no process holds its lock; raises OSError."""
        if (os.getpid(), str(path)) in _open_files:
            return None  # opening and closing the file again would release the lock
        descriptor = file_open(path, os.O_RDWR | os.O_APPEND)
        try:
            if _lock(descriptor) and os.fstat(descriptor).st_nlink:
                return cls(path, descriptor)
        except BaseException:
            os.close(descriptor)
            raise
        os.close(descriptor)
        return None

    def append(self, data: bytes) -> None:
        """Appends all bytes or none; raises OSError."""
        self._check_file_id()
        try:
            _write(self._descriptor, data)
        except BaseException:
            with suppress(OSError):  # a remaining partial frame is invalid, and readers skip it
                os.ftruncate(self._descriptor, self.size)
            raise
        self.size += len(data)

    def truncate(self, size: int) -> None:
        """Truncates the file to this size; raises OSError."""
        self._check_file_id()
        os.ftruncate(self._descriptor, size)
        self.size = size

    def open_reader(self) -> BinaryIO:
        """Opens a reader at the beginning, independent of appends.

        Closing the reader leaves the file open.
        """
        return io.BufferedReader(_PositionedReader(self._descriptor))

    def remove(self) -> None:
        """Deletes the file; raises OSError."""
        self._check_file_id()
        self.path.unlink(missing_ok=True)

    def close(self, *, replaced: bool = False) -> None:
        """Closes the file and releases its lock.

        `replaced`: another file of this process already has the same name.
        """
        if not replaced:
            _open_files.discard((os.getpid(), str(self.path)))
        with suppress(OSError):
            if self._owns_descriptor():
                os.close(self._descriptor)
        self._descriptor = -1

    def _owns_descriptor(self) -> bool:
        status = os.fstat(self._descriptor)
        return (status.st_dev, status.st_ino) == self._file_id

    def _check_file_id(self) -> None:
        """Raises FolderError unless path and descriptor still refer to the locked file.

        A job may close all descriptors and reuse their numbers, and a cleaner may remove or move
        files. No later process would find a moved file.
        """
        try:
            status = self.path.lstat()
        except FileNotFoundError:
            status = None
        if (
            status is None
            or (status.st_dev, status.st_ino) != self._file_id
            or not self._owns_descriptor()
        ):
            raise FolderError("another program closed, removed or moved the file")


class _PositionedReader(io.RawIOBase):
    """Reads at its own offset, because each append moves the descriptor's offset to the end of the
    file.
    """

    def __init__(self, descriptor: int) -> None:
        self._descriptor, self._at = descriptor, 0

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def seek(self, offset: int, whence: int = os.SEEK_SET) -> int:
        start = {
            os.SEEK_SET: 0,
            os.SEEK_CUR: self._at,
            os.SEEK_END: os.fstat(self._descriptor).st_size,
        }[whence]
        self._at = start + offset
        return self._at

    def readinto(self, buffer: Any) -> int:
        into = memoryview(buffer).cast("B")
        data = os.pread(self._descriptor, len(into), self._at)
        into[: len(data)] = data
        self._at += len(data)
        return len(data)


def _lock(descriptor: int) -> bool:
    """Tries to take the lock; returns whether this process holds it.

    Raises OSError if the file system has no locks.
    """
    try:
        fcntl.lockf(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        if error.errno in (errno.EACCES, errno.EAGAIN):
            return False
        raise
    return True


def _write(descriptor: int, data: bytes) -> None:
    view = memoryview(data)
    while view:
        view = view[os.write(descriptor, view) :]
