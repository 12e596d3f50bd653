"""Write-ahead log: closed windows of one instance on disk until the dashboard acknowledges them.

A later process of the project sends the windows of a killed job (see `recovery.py`).
- Layout: identity, window and watermark frames (see `format.py`). A watermark settles all windows
  below its number.
- Append: a closed window costs one append. The identity is repeated when it changes and after every
  `CHECK_BYTES`.
- Truncate: when no window is queued, the file shrinks to its head.
- Rewrite: windows that were merged, or windows that are queued again, need a new file, which
  atomically replaces the old one. Windows must be on disk as they are sent. Otherwise a later
  process would send the parts of a merged window under their own ranges, and the dashboard would
  count them twice.
- Exclusion: the file lock keeps recovering processes out while this process lives.

There is no fsync: the page cache survives a killed process, not a crash of the host. The spool uses
at most 16 MiB per instance and 64 MiB per user. A write error never reaches the caller: windows
stay in memory, the error is counted, and after `RETRY_SECONDS` all queued windows are written
again. Only the agent's thread uses the spool.
"""

from __future__ import annotations

import errno
import hashlib
import itertools
import os
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from compilewatch.config import Config
from compilewatch.export.outbox import Entry
from compilewatch.export.spool.format import (
    IDENTITY,
    encode_frame,
    encode_head,
    encode_watermark,
    encode_window,
)
from compilewatch.export.spool.locked_file import CAN_LOCK, LockedFile
from compilewatch.runtime.private_files import base_folder, folder_open, list_files
from compilewatch.wire.codec import dumps
from compilewatch.wire.messages import Identity

SUFFIX = ".spool"
OFF = "off"
MAX_INSTANCE_BYTES, MAX_HOST_BYTES = 16 << 20, 64 << 20
CHECK_BYTES = 64 << 10
"""File growth in bytes between two checks of the folder size; the identity is repeated at the same
time.
"""
RETRY_SECONDS = 60.0
ADVICE = (
    "free space there, set COMPILEWATCH_SPOOL to a folder that this user owns, or set it to off"
)


def spool_folder(config: Config) -> Path:
    """Returns the spool folder.

    A configured folder may be shared, so it holds a subfolder per user. Raises OSError.
    """
    return folder_open(
        Path(config.spool) / f"compilewatch-{os.getuid()}"
        if config.spool
        else base_folder() / "spool"
    )


def project_of(config: Config) -> str:
    """Returns the file name prefix of a project: a hash that reveals neither endpoint nor key."""
    return hashlib.sha256(f"{config.endpoint}\0{config.api_key}".encode()).hexdigest()[:16]


def disabled_reason(config: Config) -> str:
    """Returns why nothing is stored on disk; empty if the spool is on."""
    if config.spool == OFF:
        return (
            "switched off by COMPILEWATCH_SPOOL=off: a killed job loses its unacknowledged windows"
        )
    if config.file is not None:
        return "reports are recorded to a file, which survives a kill"
    return (
        ""
        if CAN_LOCK
        else "this system has no file locks: a killed job loses its unacknowledged windows"
    )


def spool_capability(config: Config) -> tuple[str, str]:
    """Returns the spool's capability for these settings; creates and removes a test file."""
    off = disabled_reason(config)
    if off:
        return "no", off
    try:
        file = LockedFile.create(
            spool_folder(config) / f"doctor-{os.getpid()}", [b"x" * CHECK_BYTES]
        )
        file.remove()
    except OSError as error:
        return "no", f"closed windows would be in memory only: {error.strerror or error}"
    file.close()
    return "yes", ""


class Spool:
    """The spool of one instance; only the agent's thread uses it, and it never raises OSError."""

    def __init__(
        self,
        config: Config,
        identity: Identity,
        clock: Callable[[], float] = time.monotonic,
        say: Callable[[str], None] = lambda sentence: None,
    ) -> None:
        self.errors = 0
        """Number of windows that were not on disk when they closed, and of failed updates of the
        file.
        """
        self.problem = ""
        """Why windows are in memory only; empty if the spool works."""
        self.has_warned = False
        """Whether the warning about the problem was printed."""
        self._off = disabled_reason(config)
        self._warn = say
        self._config = config
        self._identity = identity
        self._clock = clock
        self._file: LockedFile | None = None
        self._head_identity = self._written_identity = b""
        self._head_size = self._check_at = self._last_seq = 0
        self._first_seq = 1
        """Windows below this number are settled and need not be on disk."""
        self._retry_at = 0.0
        self._merges = 0
        """Number of merged windows at the last rewrite."""

    def capability(self) -> tuple[str, str]:
        """Returns the capability: whether a killed job loses only its open window."""
        if self._off:
            return "no", self._off
        return (
            ("no", f"closed windows are in memory only: {self.problem}")
            if self.problem
            else ("yes", "")
        )

    @property
    def is_complete(self) -> bool:
        """Whether all queued windows are on disk."""
        return not self._off and not self.problem

    def store(self, closed: Entry, waiting: Callable[[], list[Entry]]) -> None:
        """Writes a window that just closed.

        `waiting` returns all unacknowledged windows, including this one.
        """
        if self._off:
            return
        if self.problem and self._clock() < self._retry_at:
            self.errors += 1
            return
        try:
            self._store(encode_window(closed), waiting)
        except OSError as error:
            self._handle_error(error)
        self._last_seq = closed.seq[1]

    def _store(self, data: bytes, waiting: Callable[[], list[Entry]]) -> None:
        file = self._file
        if file is None or self.problem or file.size + len(data) > MAX_INSTANCE_BYTES:
            self._rewrite(waiting())
            return
        identity = dumps(self._identity)
        if identity != self._written_identity or file.size > self._check_at:
            data = encode_frame(IDENTITY, identity) + data
            self._check_host(file.path, file.size + len(data))
            self._check_at = file.size + CHECK_BYTES
        file.append(data)
        self._written_identity = identity

    def prepare_send(self, waiting: list[Entry], merges: int) -> None:
        """Rewrites the file before sending if windows were merged since the last rewrite.

        A later process would otherwise send the parts of a merged window under their own ranges,
        and the dashboard would count them twice.
        """
        fresh = not any(entry.attempted for entry in waiting)
        if self._file is None or merges == self._merges or not fresh:
            return
        self._merges = merges
        try:
            self._rewrite(waiting)
        except OSError as error:
            self._handle_error(error)
            with suppress(OSError):
                self._file.truncate(self._head_size)

    def update_pending(self, waiting: list[Entry]) -> None:
        """Settles the windows that are no longer queued, and writes those that are queued again."""
        if self._file is None:
            return
        first = waiting[0].seq[0] if waiting else self._last_seq + 1
        if first == self._first_seq:
            return
        try:
            if first < self._first_seq:
                self._rewrite(waiting)
            elif not waiting:
                self._truncate(self._file)
            elif not self.problem:
                self._file.append(encode_watermark(first))
            self._first_seq = first
        except OSError as error:
            self._handle_error(error)

    def _truncate(self, file: LockedFile) -> None:
        if self._written_identity == self._head_identity:
            file.truncate(self._head_size)
            self._check_at = self._head_size + CHECK_BYTES
        else:
            self._rewrite([])
        self.problem = ""

    def _rewrite(self, waiting: list[Entry]) -> None:
        """Replaces the file atomically; the old file stays intact until then."""
        path = (
            spool_folder(self._config) / f"{project_of(self._config)}-{self._identity.id}{SUFFIX}"
        )
        identity = dumps(self._identity)
        head = encode_head(identity)
        self._check_host(path, len(head) + sum(len(entry.body) for entry in waiting))
        file = LockedFile.create(path, itertools.chain([head], map(encode_window, waiting)))
        if self._file is not None:
            self._file.close(replaced=True)
        self._file = file
        self._head_identity = self._written_identity = identity
        self._head_size, self._check_at = len(head), file.size + CHECK_BYTES
        self._first_seq = waiting[0].seq[0] if waiting else self._last_seq + 1
        self.problem = ""

    def close(self, waiting: list[Entry]) -> None:
        """Closes the file; removes it if no window is queued, otherwise leaves it to a later
        process.
        """
        file, self._file = self._file, None
        if file is None:
            return
        try:
            if not waiting:
                file.remove()
        except OSError as error:
            self._handle_error(error)
        file.close()

    def _check_host(self, path: Path, size: int) -> None:
        others = sum(
            stored.size for stored in list_files(path.parent, SUFFIX) if stored.path != path
        )
        if others + size > MAX_HOST_BYTES:
            raise OSError(
                errno.ENOSPC,
                f"the spool folder has reached its limit of {MAX_HOST_BYTES >> 20} MiB",
            )

    def _handle_error(self, error: OSError) -> None:
        self.errors += 1
        self.problem = f"{error.strerror or error}"
        if not self.has_warned:
            self.has_warned = True
            self._warn(
                f"closed windows are in memory only ({self.problem}) and are lost if this job "
                f"is killed; {ADVICE}"
            )
        self._retry_at = self._clock() + RETRY_SECONDS
