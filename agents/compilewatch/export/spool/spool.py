"""What a killed job leaves behind: the closed windows of one instance, on disk and locked until the dashboard holds them."""

from __future__ import annotations

import errno
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
    frame,
    head_frames,
    watermark_frame,
    window_frame,
)
from compilewatch.export.spool.locked_file import CAN_LOCK, LockedFile
from compilewatch.identity.sha256 import sha256_hex
from compilewatch.runtime.private_files import base_folder, files_kept, folder_open
from compilewatch.wire.codec import dumps
from compilewatch.wire.messages import Identity

SUFFIX = ".spool"
OFF = "off"
MAX_INSTANCE_BYTES, MAX_HOST_BYTES = 16 << 20, 64 << 20
CHECK_BYTES = 64 << 10
"""How much a file grows until the size of the folder is looked up again and the identity is repeated."""
RETRY_SECONDS = 60.0
ADVICE = "make room there, or name a folder of this user's in COMPILEWATCH_SPOOL, or set it to off"


def spool_folder(config: Config) -> Path:
    """Where windows are kept. A folder that was chosen may be everybody's, so this user gets one inside. Raises OSError."""
    return folder_open(
        Path(config.spool) / f"compilewatch-{os.getuid()}"
        if config.spool
        else base_folder() / "spool"
    )


def project_of(config: Config) -> str:
    """What the files of a project begin with: the same for the same endpoint and key, neither of which can be read from it."""
    return sha256_hex(f"{config.endpoint}\0{config.api_key}".encode())[:16]


def why_off(config: Config) -> str:
    """Why nothing is kept on disk; empty if it is."""
    if config.spool == OFF:
        return "switched off by COMPILEWATCH_SPOOL=off: a job that is killed loses what was not acknowledged"
    if config.file is not None:
        return "reports are recorded to a file, where they are safe at once"
    return (
        ""
        if CAN_LOCK
        else "this system has no file locks: a job that is killed loses what was not acknowledged"
    )


def spool_capability(config: Config) -> tuple[str, str]:
    """What the capability table would say of a process with these settings: a file is made and removed."""
    off = why_off(config)
    if off:
        return "no", off
    try:
        made = LockedFile.create(
            spool_folder(config) / f"doctor-{os.getpid()}", [b"x" * CHECK_BYTES]
        )
        made.remove()
    except OSError as error:
        return "no", f"closed windows would wait in memory alone: {error.strerror or error}"
    made.close()
    return "yes", ""


class Spool:
    """Belongs to the agent's thread and never raises OSError: what cannot be written stays in memory alone, is counted, and a minute
    later everything that still waits is written again."""

    def __init__(
        self,
        config: Config,
        identity: Identity,
        clock: Callable[[], float] = time.monotonic,
        say: Callable[[str], None] = lambda sentence: None,
    ) -> None:
        self.errors = 0
        """Windows that were not on disk when they closed, and times the file could not be brought up to date."""
        self.problem = ""
        """Why windows are in memory alone; empty while all is well."""
        self.said = False
        """Whether that was said once."""
        self._off = why_off(config)
        self._say = say
        self._config = config
        self._identity = identity
        self._clock = clock
        self._file: LockedFile | None = None
        self._head_identity = self._written_identity = b""
        self._head_size = self._check_at = self._last_seq = 0
        self._first_seq = 1
        """Windows below it are settled, and need not be on disk."""
        self._retry_at = 0.0
        self._merges = 0
        """How many windows had been merged when they were last written as they are sent."""

    def capability(self) -> tuple[str, str]:
        """What the capability table says: whether a job that is killed loses no more than its open window."""
        if self._off:
            return "no", self._off
        return (
            ("no", f"closed windows wait in memory alone: {self.problem}")
            if self.problem
            else ("yes", "")
        )

    @property
    def holds(self) -> bool:
        """Whether everything that waits is on disk."""
        return not self._off and not self.problem

    def keep(self, closed: Entry, waiting: Callable[[], list[Entry]]) -> None:
        """Puts a window that just closed on disk; `waiting` are all that are not acknowledged, it included."""
        if self._off:
            return
        if self.problem and self._clock() < self._retry_at:
            self.errors += 1
            return
        try:
            self._keep(window_frame(closed), waiting)
        except OSError as error:
            self._failed(error)
        self._last_seq = closed.seq[1]

    def _keep(self, data: bytes, waiting: Callable[[], list[Entry]]) -> None:
        file = self._file
        if file is None or self.problem or file.size + len(data) > MAX_INSTANCE_BYTES:
            self._rewrite(waiting())
            return
        identity = dumps(self._identity)
        if identity != self._written_identity or file.size > self._check_at:
            data = frame(IDENTITY, identity) + data
            self._check_host(file.path, file.size + len(data))
            self._check_at = file.size + CHECK_BYTES
        file.append(data)
        self._written_identity = identity

    def ahead_of_sending(self, waiting: list[Entry], merges: int) -> None:
        """Puts windows on disk as they will be sent, where some were merged since: those that they were made of, sent by a later process
        under ranges of their own, would count twice."""
        fresh = not any(entry.attempted for entry in waiting)
        if self._file is None or merges == self._merges or not fresh:
            return
        self._merges = merges
        try:
            self._rewrite(waiting)
        except OSError as error:
            self._failed(error)
            with suppress(OSError):
                self._file.truncate(self._head_size)

    def settled(self, waiting: list[Entry]) -> None:
        """Lets go of the windows that no longer wait, and takes those in that wait again."""
        if self._file is None:
            return
        first = waiting[0].seq[0] if waiting else self._last_seq + 1
        if first == self._first_seq:
            return
        try:
            if first < self._first_seq:
                self._rewrite(waiting)
            elif not waiting:
                self._empty(self._file)
            elif not self.problem:
                self._file.append(watermark_frame(first))
            self._first_seq = first
        except OSError as error:
            self._failed(error)

    def _empty(self, file: LockedFile) -> None:
        if self._written_identity == self._head_identity:
            file.truncate(self._head_size)
            self._check_at = self._head_size + CHECK_BYTES
        else:
            self._rewrite([])
        self.problem = ""

    def _rewrite(self, waiting: list[Entry]) -> None:
        """Another file in place of the one that is there, which stays whole until then."""
        path = (
            spool_folder(self._config) / f"{project_of(self._config)}-{self._identity.id}{SUFFIX}"
        )
        identity = dumps(self._identity)
        head = head_frames(identity)
        self._check_host(path, len(head) + sum(len(entry.body) for entry in waiting))
        made = LockedFile.create(path, itertools.chain([head], map(window_frame, waiting)))
        if self._file is not None:
            self._file.close(replaced=True)
        self._file = made
        self._head_identity = self._written_identity = identity
        self._head_size, self._check_at = len(head), made.size + CHECK_BYTES
        self._first_seq = waiting[0].seq[0] if waiting else self._last_seq + 1
        self.problem = ""

    def close(self, waiting: list[Entry]) -> None:
        """Ends the file: with nothing waiting it goes, else it is left for a later process."""
        file, self._file = self._file, None
        if file is None:
            return
        try:
            if not waiting:
                file.remove()
        except OSError as error:
            self._failed(error)
        file.close()

    def _check_host(self, path: Path, size: int) -> None:
        others = sum(kept.size for kept in files_kept(path.parent, SUFFIX) if kept.path != path)
        if others + size > MAX_HOST_BYTES:
            raise OSError(errno.ENOSPC, f"the spool folder holds its {MAX_HOST_BYTES >> 20} MiB")

    def _failed(self, error: OSError) -> None:
        self.errors += 1
        self.problem = f"{error.strerror or error}"
        if not self.said:
            self.said = True
            self._say(
                f"closed windows wait in memory alone ({self.problem}) and are lost if this job is killed; {ADVICE}"
            )
        self._retry_at = self._clock() + RETRY_SECONDS
