"""Crash recovery: sends the windows that killed instances of this project left in the spool.

Each file is sent under its own instance id, and only while no living process holds its lock.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from pathlib import Path

from compilewatch.config import Config
from compilewatch.export.outbox import Entry, Outbox, renumber_report
from compilewatch.export.sender import Sender
from compilewatch.export.spool.format import Contents, encode_watermark, read_contents, read_windows
from compilewatch.export.spool.locked_file import UNFINISHED, LockedFile
from compilewatch.export.spool.spool import SUFFIX, disabled_reason, project_of, spool_folder
from compilewatch.export.transport import Transport
from compilewatch.identity.identity import successor_id
from compilewatch.runtime.private_files import list_files
from compilewatch.wire.codec import dumps
from compilewatch.wire.messages import MAX_REPORTS, MAX_WINDOW_AGE, Identity

SCAN_INTERVAL_SECONDS = 60.0
UNFINISHED_MAX_AGE_SECONDS = 600.0
MAX_BATCH_BYTES = 512 << 10


class OrphanSpool:
    """One spool file of a dead instance; sent batch by batch, then removed."""

    def __init__(
        self, file: LockedFile, identity: Identity, windows: Iterator[Entry], transport: Transport
    ) -> None:
        self.file = file
        self._identity = identity
        self._windows = windows
        self._outbox = Outbox()
        self._sender = Sender(transport, self._outbox, renews=True)
        self._last = 0
        """Last sequence number of the current batch, as in the file."""
        self._open_next = 0
        """First sequence number for the next window under a new id; 0 if windows keep their
        numbers.
        """

    def step(self) -> bool:
        """Sends one batch if its retry time has come; returns True when nothing is left.

        Raises OSError.
        """
        if not len(self._outbox):
            self._outbox.restore(self._batch())
        if len(self._outbox) and self._sender.is_due():
            self._sender.attempt(self._identity)
            if self._outbox.renewable:
                self._renew()
            if not len(self._outbox):
                self.file.append(encode_watermark(self._last + 1))
                self._outbox.restore(self._batch())
        return not len(self._outbox)

    def _batch(self) -> list[Entry]:
        batch: list[Entry] = []
        size = 0
        for entry in self._windows:
            self._last = entry.seq[1]
            if self._open_next:
                report = renumber_report(entry, self._open_next)
                self._open_next = report.seq[1] + 1
                entry = Entry(report.seq, *report.window, dumps(report))
            batch.append(entry)
            size += len(entry.body)
            if len(batch) == MAX_REPORTS or size >= MAX_BATCH_BYTES:
                break
        return batch

    def _renew(self) -> None:
        """Switches to a new id after a conflict.

        The id is derived from the first window, so that a restarted recovery chooses the same id.
        """
        self._identity.id = successor_id(self._identity.id, self._outbox.pending()[0].body)
        self._open_next = self._outbox.renumber() + 1


class SpoolRecovery:
    """Only the agent's thread uses it; it never raises OSError."""

    def __init__(
        self, config: Config, transport: Transport, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self.errors = 0
        """Number of damaged byte ranges and unreadable files."""
        self._config = config
        self._transport = transport
        self._clock = clock
        self._off = bool(disabled_reason(config))
        self._project = project_of(config)
        self._current: OrphanSpool | None = None
        self._unreadable: set[Path] = set()
        self._next_scan_at = 0.0

    def step(self) -> None:
        """Sends at most one batch. Call it only while the process itself has nothing to send."""
        if self._off:
            return
        try:
            if self._current is None and self._clock() >= self._next_scan_at:
                self._next_scan_at = self._clock() + SCAN_INTERVAL_SECONDS
                self._current = self._open_next()
            if self._current is not None and self._current.step():
                self._current.file.remove()
                self.close()
                self._next_scan_at = 0.0
        except OSError:
            self.errors += 1
            if self._current is not None:
                self._unreadable.add(self._current.file.path)
            self.close()

    def close(self) -> None:
        """Leaves the remaining windows to another process."""
        current, self._current = self._current, None
        if current is not None:
            current.file.close()

    def _open_next(self) -> OrphanSpool | None:
        """Opens the next file of this project that no process holds.

        Removes files that are too old for any dashboard.
        """
        folder, now = spool_folder(self._config), time.time()
        for stored in list_files(folder, SUFFIX + UNFINISHED):
            if stored.modified_at < now - UNFINISHED_MAX_AGE_SECONDS:
                stored.path.unlink(missing_ok=True)
        for stored in list_files(folder, SUFFIX):
            is_own, too_old = (
                stored.path.name.startswith(self._project),
                stored.modified_at < now - MAX_WINDOW_AGE,
            )
            if (is_own or too_old) and stored.path not in self._unreadable:
                try:
                    spool = self._open_file(stored.path, remove=too_old)
                except OSError:
                    self.errors += is_own
                    self._unreadable.add(stored.path)
                    continue
                if spool is not None:
                    return spool
        return None

    def _open_file(self, path: Path, *, remove: bool) -> OrphanSpool | None:
        """Opens the file for sending.

        Returns None if another process holds it, or if it was useless and has been removed. Raises
        OSError.
        """
        file = LockedFile.open_if_free(path)
        if file is None:
            return None
        try:
            contents = Contents() if remove else read_contents(file.open_reader())
            self.errors += contents.damaged_ranges
            if contents.identity is not None:
                return OrphanSpool(
                    file,
                    contents.identity,
                    read_windows(file.open_reader(), contents.watermark),
                    self._transport,
                )
            self.errors += path.name.startswith(self._project)
            file.remove()
        except OSError:
            file.close()
            raise
        file.close()
        return None
