"""Sends what instances of this project left on disk when they were killed: with their own ids, and only what no living process holds."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from pathlib import Path

from compilewatch.config import Config
from compilewatch.export.outbox import Entry, Outbox, report_renumbered
from compilewatch.export.sender import Sender
from compilewatch.export.spool.format import Contents, contents_read, watermark_frame, windows_read
from compilewatch.export.spool.locked_file import UNFINISHED, LockedFile
from compilewatch.export.spool.spool import SUFFIX, project_of, spool_folder, why_off
from compilewatch.export.transport import Transport
from compilewatch.identity.identity import successor_id
from compilewatch.runtime.private_files import files_kept
from compilewatch.wire.codec import dumps
from compilewatch.wire.messages import MAX_REPORTS, MAX_WINDOW_AGE, Identity

LOOK_SECONDS = 60.0
UNFINISHED_SECONDS = 600.0
MAX_BATCH_BYTES = 512 << 10


class Leftover:
    """One file of a dead instance, sent batch by batch and then removed."""

    def __init__(
        self, file: LockedFile, identity: Identity, windows: Iterator[Entry], transport: Transport
    ) -> None:
        self.file = file
        self._identity = identity
        self._windows = windows
        self._outbox = Outbox()
        self._sender = Sender(transport, self._outbox, renews=True)
        self._last = 0
        """The last number of the batch, as the file has it."""
        self._next = 0
        """The number of the next window of a new instance; 0: windows keep theirs."""

    def step(self) -> bool:
        """One batch, if its time has come; True once nothing is left to send. Raises OSError."""
        if not len(self._outbox):
            self._outbox.restore(self._batch())
        if len(self._outbox) and self._sender.due():
            self._sender.attempt(self._identity)
            if self._outbox.renewable:
                self._renew()
            if not len(self._outbox):
                self.file.append(watermark_frame(self._last + 1))
                self._outbox.restore(self._batch())
        return not len(self._outbox)

    def _batch(self) -> list[Entry]:
        batch: list[Entry] = []
        size = 0
        for entry in self._windows:
            self._last = entry.seq[1]
            if self._next:
                report = report_renumbered(entry, self._next)
                self._next = report.seq[1] + 1
                entry = Entry(report.seq, *report.window, dumps(report))
            batch.append(entry)
            size += len(entry.body)
            if len(batch) == MAX_REPORTS or size >= MAX_BATCH_BYTES:
                break
        return batch

    def _renew(self) -> None:
        """Another process reported under this id: the rest is sent as another instance, the same one each time that it is begun."""
        self._identity.id = successor_id(self._identity.id, self._outbox.waiting()[0].body)
        self._next = self._outbox.renumber() + 1


class Leftovers:
    """Belongs to the agent's thread and never raises OSError."""

    def __init__(
        self, config: Config, transport: Transport, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self.errors = 0
        """Stretches of files that were damaged, and files that could not be read."""
        self._config = config
        self._transport = transport
        self._clock = clock
        self._off = bool(why_off(config))
        self._project = project_of(config)
        self._current: Leftover | None = None
        self._unreadable: set[Path] = set()
        self._look_at = 0.0

    def step(self) -> None:
        """Sends one batch at most; to be called while the instance has nothing of its own to send."""
        if self._off:
            return
        try:
            if self._current is None and self._clock() >= self._look_at:
                self._look_at = self._clock() + LOOK_SECONDS
                self._current = self._next()
            if self._current is not None and self._current.step():
                self._current.file.remove()
                self.close()
                self._look_at = 0.0
        except OSError:
            self.errors += 1
            if self._current is not None:
                self._unreadable.add(self._current.file.path)
            self.close()

    def close(self) -> None:
        """Leaves the rest to another process."""
        current, self._current = self._current, None
        if current is not None:
            current.file.close()

    def _next(self) -> Leftover | None:
        """The next file of this project that nobody holds; what is too old for any dashboard is removed on the way."""
        folder, now = spool_folder(self._config), time.time()
        for kept in files_kept(folder, SUFFIX + UNFINISHED):
            if kept.written < now - UNFINISHED_SECONDS:
                kept.path.unlink(missing_ok=True)
        for kept in files_kept(folder, SUFFIX):
            ours, too_old = (
                kept.path.name.startswith(self._project),
                kept.written < now - MAX_WINDOW_AGE,
            )
            if (ours or too_old) and kept.path not in self._unreadable:
                try:
                    found = self._take(kept.path, remove=too_old)
                except OSError:
                    self.errors += ours
                    self._unreadable.add(kept.path)
                    continue
                if found is not None:
                    return found
        return None

    def _take(self, path: Path, *, remove: bool) -> Leftover | None:
        """The file ready to be sent; None if somebody holds it, or if it is of no use and gone now. Raises OSError."""
        file = LockedFile.take(path)
        if file is None:
            return None
        try:
            contents = Contents() if remove else contents_read(file.reader())
            self.errors += contents.damaged
            if contents.identity is not None:
                return Leftover(
                    file,
                    contents.identity,
                    windows_read(file.reader(), contents.watermark),
                    self._transport,
                )
            self.errors += path.name.startswith(self._project)
            file.remove()
        except OSError:
            file.close()
            raise
        file.close()
        return None
