"""A file that one process at a time writes to, in whole pieces; its lock goes when the process does, however that ends."""

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

_held: set[tuple[int, str]] = set()
"""Process and path of each file that is open here: a lock never keeps out the process that holds it."""


class LockedFile:
    """Open for reading and appending. A child made by fork has the descriptor and not the lock, and must not touch it."""

    def __init__(self, path: Path, descriptor: int) -> None:
        found = os.fstat(descriptor)
        self.path = path
        self.size = found.st_size
        self._descriptor = descriptor
        self._place = found.st_dev, found.st_ino
        _held.add((os.getpid(), str(path)))

    @classmethod
    def create(cls, path: Path, pieces: Iterable[bytes]) -> LockedFile:
        """The file with these bytes, in place of any that was there; nobody meets it unlocked or unfinished. Raises OSError."""
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
    def take(cls, path: Path) -> LockedFile | None:
        """The file, if nobody holds it; raises OSError."""
        if (os.getpid(), str(path)) in _held:
            return None  # opening and closing it once more would already end the lock
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
        """All of it or nothing; raises OSError."""
        self._check_place()
        try:
            _write(self._descriptor, data)
        except BaseException:
            with suppress(OSError):  # what is left of it is no frame, and a reader skips it
                os.ftruncate(self._descriptor, self.size)
            raise
        self.size += len(data)

    def truncate(self, size: int) -> None:
        """Keeps only the first bytes; raises OSError."""
        self._check_place()
        os.ftruncate(self._descriptor, size)
        self.size = size

    def reader(self) -> BinaryIO:
        """For reading from its beginning, also while more is appended; closing it leaves the file open."""
        return io.BufferedReader(_Placed(self._descriptor))

    def remove(self) -> None:
        """Deletes the file; raises OSError."""
        self._check_place()
        self.path.unlink(missing_ok=True)

    def close(self, *, replaced: bool = False) -> None:
        """Lets go of it, and so of its lock; `replaced` where another one of this process took its place under the same name."""
        if not replaced:
            _held.discard((os.getpid(), str(self.path)))
        with suppress(OSError):
            if self._is_here():
                os.close(self._descriptor)
        self._descriptor = -1

    def _is_here(self) -> bool:
        found = os.fstat(self._descriptor)
        return (found.st_dev, found.st_ino) == self._place

    def _check_place(self) -> None:
        """A job may close every descriptor and open its own under the same numbers, and a cleaner may remove or move files: no later
        process would find them."""
        try:
            found = self.path.lstat()
        except FileNotFoundError:
            found = None
        if found is None or (found.st_dev, found.st_ino) != self._place or not self._is_here():
            raise FolderError("the file was closed, removed or moved by somebody else")


class _Placed(io.RawIOBase):
    """Reads at a place of its own: that of the descriptor moves to the end of the file with each append, past all that was not read yet."""

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
    """Whether this process holds the lock now; raises OSError where the file system has no locks."""
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
