"""One instance at work: its window, its identity, its outbox, and the one thread that polls, bins, closes and sends."""

from __future__ import annotations

import random
import threading
import time
from collections.abc import Callable

from compilewatch.config import Config
from compilewatch.guard import Guard
from compilewatch.identity import identity_build, identity_refresh
from compilewatch.outbox import Outbox
from compilewatch.recorder import Recorder
from compilewatch.sender import Sender
from compilewatch.sources.installed import InstalledSources
from compilewatch.transport import FileTransport, HttpTransport, Transport
from compilewatch.wire.report import Identity, Losses

TICK_SECONDS = 1.0
BUSY_CALLS, BUSY_TICK_SECONDS = 20_000, 0.1


class Worker:
    """Lives as long as its instance; a forked child gets another one."""

    def __init__(self, config: Config, recorder: Recorder, sources: InstalledSources) -> None:
        self.outbox = Outbox()
        self.sender = Sender(_transport(config), self.outbox)
        self.identity: Identity | None = None
        self._config = config
        self._recorder = recorder
        self._sources = sources
        self._seq = 0
        self._window_start = time.time()
        self._stopping = False
        self._wake = threading.Event()
        self._done = threading.Event()

    def start(self) -> None:
        """Starts the thread."""
        threading.Thread(target=self._run, name="compilewatch", daemon=True).start()

    def stop(self, seconds: float) -> bool:
        """Has the last window closed and everything sent once; waits no longer than that. True if it was done in time."""
        self._stopping = True
        self._wake.set()
        return self._done.wait(seconds)

    def _run(self) -> None:
        try:
            self._guarded(self._identify)
            self._record()
            self._guarded(self._sources.poll)
            self._guarded(self._close_window)
            self._send_rest()
        finally:
            self._done.set()

    def _record(self) -> None:
        """Until the agent is stopped, or has switched itself off."""
        tick, interval = 0.0, self._config.interval
        next_close = time.monotonic() + random.random() * interval
        while not self._stopping and self._recorder.lines is not None:
            self._wake.wait(max(0.0, min(tick, next_close - time.monotonic())))
            self._guarded(self._sources.poll)
            busy = (self._guarded(self._recorder.drain) or 0) > BUSY_CALLS
            tick = BUSY_TICK_SECONDS if busy else TICK_SECONDS
            if not self._stopping and time.monotonic() >= next_close:
                # A thread that was held up skips the windows it missed: the open one covers them.
                next_close += interval * max(1, int((time.monotonic() - next_close) / interval) + 1)
                self._guarded(self._close_window)
            if self.sender.due():
                self._guarded(self._send)

    def _send_rest(self) -> None:
        """What is still there when recording is over: at a stop one try, after a switch-off until it is through."""
        while len(self.outbox):
            if not self._guarded(self._send) and self._stopping:
                return
            self._wake.wait(max(0.0, self.sender.next_attempt - time.monotonic()))

    def _guarded(self, step: Callable[[], int | bool | None]) -> int | bool | None:
        with Guard(self._recorder):
            return step()
        return None

    def _identify(self) -> None:
        self.identity = identity_build(self._config)

    def _close_window(self) -> None:
        start, self._window_start = self._window_start, time.time()
        self._seq += 1
        # Where the host's clock was set back the window has no length: one that ends in the future would be refused.
        report = self._recorder.close(self._seq, min(start, self._window_start), self._window_start)
        report.losses = Losses(
            merged_windows=self.outbox.merged_windows,
            truncated_events=self._recorder.truncated_events + self.outbox.truncated_events,
            internal_errors=self._recorder.internal_errors,
            rejected_windows=self.outbox.rejected_windows,
        )
        self.outbox.add(report)

    def _send(self) -> bool:
        """One batch; True if the server answered for it."""
        if self.identity is None:
            self._identify()
        assert self.identity is not None
        self._guarded(self._refresh)
        return self.sender.attempt(self.identity)

    def _refresh(self) -> None:
        if self.identity is not None:
            self.identity.capabilities = self._sources.capabilities()
            identity_refresh(self.identity)


def _transport(config: Config) -> Transport:
    return FileTransport(config.file) if config.file is not None else HttpTransport(config.endpoint, config.api_key)
