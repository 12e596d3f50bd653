"""The one thread of an instance: it polls, bins, closes windows, has them sent, and holds up the end of a process for a second at most."""

from __future__ import annotations

import random
import threading
import time
from collections.abc import Callable
from typing import TYPE_CHECKING

from compilewatch.config import Config
from compilewatch.errors import say_aside
from compilewatch.lazy_modules import REPORTER, require
from compilewatch.recording.recorder import Recorder
from compilewatch.runtime.fair_wait import Patience
from compilewatch.runtime.fault_barrier import FaultBarrier
from compilewatch.sources.registry import InstalledSources

if TYPE_CHECKING:
    from compilewatch.reporter import Instance

TICK_SECONDS = 1.0
BUSY_CALLS, BUSY_TICK_SECONDS = 20_000, 0.1
LOAD_SECONDS = 1.0
"""How long a fork waits at most for what the thread loads."""


class Worker:
    """Lives as long as its instance; a forked child gets another one."""

    def __init__(
        self,
        config: Config,
        recorder: Recorder,
        sources: InstalledSources,
        look: Callable[[], None] = lambda: None,
    ) -> None:
        """`look`: what the thread does at each of its turns besides."""
        self.instance: Instance | None = None
        """There once the thread has loaded what it sends with: the job waits for none of that."""
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
        """The thread's from its start on, but for the time that it asks a source or has a request under way."""

    def start(self) -> None:
        """Starts the thread."""
        self.thread = threading.Thread(target=self._run, name="compilewatch", daemon=True)
        self._turn.acquire()
        self.thread.start()

    def abandon(self) -> None:
        """In a forked child: this is the parent's. A thread is not copied by a fork, but a greenlet that stands for one goes on here."""
        self._abandoned = True

    def settle(self) -> None:
        """Waits until the thread imports nothing any more: a child forked in the middle of an import could never finish that import."""
        if not self._prepared.is_set() and threading.current_thread() is not self.thread:
            Patience(LOAD_SECONDS, self.thread).wait(self._prepared.wait)

    def stop(self, seconds: float) -> bool:
        """Has the last window closed and everything sent once; waits about that long, longer only where the machine is used up and the last
        window would be lost. True if all was done in time."""
        deadline, patience = time.monotonic() + seconds, Patience(seconds, self.thread)
        self._stopping = True
        self._wake.set()
        if not patience.wait(self._closed.wait, seconds / 2):
            self._close_late(patience, seconds / 4)
        if self._taken_over or not self._closed.is_set():
            return False
        if self.instance is not None and self.instance.spool.holds:
            return self._done.wait(max(seconds / 4, deadline - time.monotonic()))
        return patience.wait(self._done.wait)

    def _close_late(self, patience: Patience, seconds: float) -> None:
        """The last window has to be on disk before the process is gone, though the thread has not come to it yet."""
        if self.instance is not None:
            self.instance.interrupt()  # it waits for a dashboard that is slow
        if patience.wait(self._closed.wait, seconds) or not patience.wait(
            lambda limit: self._turn.acquire(timeout=limit)
        ):
            return
        if self.instance is not None and not self._closed.is_set():
            # A name is still being looked up, or a driver asked, which nobody can end: the thread finds nothing to do when it comes back.
            self._guarded(self.instance.close_window)
            self._guarded(self.instance.finish)
            self._taken_over = True
        self._turn.release()

    def _run(self) -> None:
        try:
            instance = self._prepare()
            if instance is None:
                return
            self._record(instance)
            if self._abandoned:
                threading.Event().wait()  # a greenlet that ended here would be missed in a list that has forgotten it
            for step in (
                self._poll,
                instance.close_window,
                self._closed.set,
                lambda: self._send_rest(instance),
                instance.finish,
            ):
                self._guarded(step)
        finally:
            self._closed.set()
            self._done.set()
            self._turn.release()

    def _prepare(self) -> Instance | None:
        """The instance, or None where it cannot be had: then nothing is recorded either."""
        try:
            found: type[Instance] = require(REPORTER).Instance
            self._sources.install_unbound()
            self.instance = found(
                self._config, self._recorder, self._sources, self._started, self._turn
            )
        except Exception as error:  # noqa: BLE001 - the job goes on without an agent
            self._recorder.stop()
            say_aside(f"off: it could not start ({type(error).__name__}: {error})")
        finally:
            self._prepared.set()
        return self.instance

    def _record(self, instance: Instance) -> None:
        """Until the agent is stopped, or has switched itself off."""
        tick, interval = 0.0, self._config.interval
        next_close = time.monotonic() + random.random() * interval
        while not (self._stopping or self._abandoned) and self._recorder.lines is not None:
            self._wake.wait(max(0.0, min(tick, next_close - time.monotonic())))
            self._guarded(self._poll)
            busy = (self._guarded(self._recorder.drain) or 0) > BUSY_CALLS
            self._guarded(self._recorder.pace)
            self._guarded(self._look)
            self._guarded(instance.look)
            tick = BUSY_TICK_SECONDS if busy else TICK_SECONDS
            if not self._stopping and time.monotonic() >= next_close:
                # A thread that was held up skips the windows it missed: the open one covers them.
                next_close += interval * max(1, int((time.monotonic() - next_close) / interval) + 1)
                self._guarded(instance.close_window)
            if not self._stopping and instance.sender.due():
                self._guarded(instance.send)
            if not self._stopping:
                self._guarded(instance.send_leftovers)
        if not self._stopping:
            # It switched itself off: torch gets back what is torch's.
            self._guarded(self._sources.uninstall)

    def _poll(self) -> None:
        """What a source asks may not answer: whoever cannot wait for it may have the turn."""
        self._turn.release()
        try:
            self._sources.poll()
        finally:
            self._turn.acquire()

    def _send_rest(self, instance: Instance) -> None:
        """What is still there when recording is over: at a stop one try, after a switch-off until it is through."""
        while len(instance.outbox) and not self._abandoned:
            if not self._guarded(instance.send) and self._stopping:
                return
            self._wake.wait(max(0.0, instance.sender.next_attempt - time.monotonic()))

    def _guarded(self, step: Callable[[], int | bool | None]) -> int | bool | None:
        with FaultBarrier(self._recorder.internal_error):
            return None if self._abandoned or self._taken_over else step()
        return None
