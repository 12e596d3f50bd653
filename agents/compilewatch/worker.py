"""Background thread of a reporter: polls sources, closes windows, and sends them.

It delays the end of the process by about one second at most.
"""

from __future__ import annotations

import random
import threading
import time
from collections.abc import Callable
from typing import TYPE_CHECKING

from compilewatch.config import Config
from compilewatch.errors import warn_user_nolock
from compilewatch.lazy_modules import REPORTER, require
from compilewatch.recording.recorder import Recorder
from compilewatch.runtime.fair_wait import FairWait
from compilewatch.runtime.fault_barrier import FaultBarrier
from compilewatch.sources.registry import InstalledSources

if TYPE_CHECKING:
    from compilewatch.reporter import Reporter

TICK_SECONDS = 1.0
BUSY_CALLS, BUSY_TICK_SECONDS = 20_000, 0.1
LOAD_SECONDS = 1.0
"""Longest wait of a fork for the imports of the thread."""


class Worker:
    """The thread of one reporter; a forked child gets a new one."""

    def __init__(
        self,
        config: Config,
        recorder: Recorder,
        sources: InstalledSources,
        look: Callable[[], None] = lambda: None,
    ) -> None:
        """`look` is an additional callback of each iteration."""
        self.reporter: Reporter | None = None
        """None until the thread has loaded the modules for sending; the job does not wait for them.
        """
        self._config = config
        self._recorder = recorder
        self._sources = sources
        self._look = look
        self._started = time.time()
        self._stopping = False
        self._abandoned = False
        self._taken_over = False
        self.thread: threading.Thread | None = None
        self._wake = threading.Event()
        self._prepared = threading.Event()
        self._closed = threading.Event()
        self._done = threading.Event()
        self._turn = threading.Lock()
        """Held by the thread from its start on, except while it polls a source or a request is in
        progress.
        """

    def start(self) -> None:
        """Starts the thread."""
        self.thread = threading.Thread(target=self._run, name="compilewatch", daemon=True)
        self._turn.acquire()
        self.thread.start()

    def abandon(self) -> None:
        """Disables the parent's worker in a forked child.

        A fork copies no threads, but a greenlet in place of a thread continues in the child.
        """
        self._abandoned = True

    def wait_until_loaded(self) -> None:
        """Waits until the thread has finished its imports.

        A child forked during an import could never complete that import.
        """
        if not self._prepared.is_set() and threading.current_thread() is not self.thread:
            FairWait(LOAD_SECONDS, self.thread).wait(self._prepared.wait)

    def stop(self, seconds: float) -> bool:
        """Closes the last window and sends all windows once. Returns whether everything finished in
        time.

        Waits for about `seconds`; longer only if the machine is overloaded and the last window
        would be lost.
        """
        deadline, fair_wait = time.monotonic() + seconds, FairWait(seconds, self.thread)
        self._stopping = True
        self._wake.set()
        if not fair_wait.wait(self._closed.wait, seconds / 2):
            self._close_late(fair_wait, seconds / 4)
        if self._taken_over or not self._closed.is_set():
            return False
        if self.reporter is not None and self.reporter.spool.is_complete:
            return self._done.wait(max(seconds / 4, deadline - time.monotonic()))
        return fair_wait.wait(self._done.wait)

    def _close_late(self, fair_wait: FairWait, seconds: float) -> None:
        """Writes the last window to disk from the calling thread if the worker's thread does not
        close it in time.
        """
        if self.reporter is not None:
            self.reporter.interrupt()  # it waits for a slow dashboard
        if fair_wait.wait(self._closed.wait, seconds) or not fair_wait.wait(
            lambda limit: self._turn.acquire(timeout=limit)
        ):
            return
        if self.reporter is not None and not self._closed.is_set():
            # The thread is in a name lookup or a driver call, which cannot be interrupted. It will
            # find nothing left to do.
            self._run_safely(self.reporter.close_window)
            self._run_safely(self.reporter.finish)
            self._taken_over = True
        self._turn.release()

    def _run(self) -> None:
        try:
            instance = self._prepare()
            if instance is None:
                return
            self._record(instance)
            if self._abandoned:
                # A greenlet must not end: the child's thread list no longer contains it.
                threading.Event().wait()
            for step in (
                self._poll,
                instance.close_window,
                self._closed.set,
                lambda: self._send_rest(instance),
                instance.finish,
            ):
                self._run_safely(step)
        finally:
            self._closed.set()
            self._done.set()
            self._turn.release()

    def _prepare(self) -> Reporter | None:
        """Creates the reporter. Returns None and stops recording if that fails."""
        try:
            reporter_type: type[Reporter] = require(REPORTER).Reporter
            self._sources.install_unbound()
            self.reporter = reporter_type(
                self._config, self._recorder, self._sources, self._started, self._turn
            )
        except Exception as error:  # noqa: BLE001 - the job continues without an agent
            self._recorder.stop()
            warn_user_nolock(f"off: the agent failed to start ({type(error).__name__}: {error})")
        finally:
            self._prepared.set()
        return self.reporter

    def _record(self, instance: Reporter) -> None:
        """Runs until the agent stops or switches itself off."""
        tick, interval = 0.0, self._config.interval
        next_close = time.monotonic() + random.random() * interval
        while not (self._stopping or self._abandoned) and self._recorder.buffers is not None:
            self._wake.wait(max(0.0, min(tick, next_close - time.monotonic())))
            self._run_safely(self._poll)
            busy = (self._run_safely(self._recorder.collect) or 0) > BUSY_CALLS
            self._run_safely(self._recorder.adapt_rate)
            self._run_safely(self._look)
            self._run_safely(instance.poll)
            tick = BUSY_TICK_SECONDS if busy else TICK_SECONDS
            if not self._stopping and time.monotonic() >= next_close:
                # A thread that was delayed skips the missed windows: the open window covers them.
                next_close += interval * max(1, int((time.monotonic() - next_close) / interval) + 1)
                self._run_safely(instance.close_window)
            if not self._stopping and instance.sender.is_due():
                self._run_safely(instance.send)
            if not self._stopping:
                self._run_safely(instance.send_recovered_windows)
        if not self._stopping:
            # The agent switched itself off: undo all bindings to torch.
            self._run_safely(self._sources.uninstall)

    def _poll(self) -> None:
        """Polls the sources without the lock, because a source may block and another thread may
        need the lock.
        """
        self._turn.release()
        try:
            self._sources.poll()
        finally:
            self._turn.acquire()

    def _send_rest(self, instance: Reporter) -> None:
        """Sends the remaining windows: one attempt at a stop, until done after the agent switched
        itself off.
        """
        while len(instance.outbox) and not self._abandoned:
            if not self._run_safely(instance.send) and self._stopping:
                return
            self._wake.wait(max(0.0, instance.sender.next_attempt - time.monotonic()))

    def _run_safely(self, step: Callable[[], int | bool | None]) -> int | bool | None:
        with FaultBarrier(self._recorder.record_internal_error):
            return None if self._abandoned or self._taken_over else step()
        return None
