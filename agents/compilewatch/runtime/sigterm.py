"""SIGTERM: the open window is sent before the process ends of it, in a bounded time, and wherever its main thread is."""

from __future__ import annotations

import _thread
import importlib
import os
import signal
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from types import FrameType
from typing import Any

from compilewatch.runtime.fair_wait import Patience
from compilewatch.runtime.fault_barrier import FaultBarrier

END_SECONDS = 2.0
"""How long the end of a process waits at most for its last window."""
HANDLER_SECONDS = 1.0
"""How long the main thread may take to come to the handler: in C code it comes there only when that returns."""


class Termination:
    """The handler of SIGTERM where the job has none. It ends the process as the default does, and equals the default: a framework that
    asks whether a handler is there finds none, and sets its own."""

    def __init__(
        self, stop: Callable[[dict[str, Any]], None], on_error: Callable[[Exception], None]
    ) -> None:
        self._stop, self._on_error = stop, on_error
        self._thread: Callable[[], threading.Thread | None] = lambda: None
        self._ending = False
        self._pipe: tuple[int, int] | None = None
        """What Python writes the number of each signal to, at once."""
        self._may_listen = True
        self._came_at: float | None = None

    def __eq__(self, other: object) -> bool:
        return other is self or (isinstance(other, int) and other == signal.SIG_DFL)

    def __hash__(self) -> int:
        return id(self)

    def install(self, thread: Callable[[], threading.Thread | None]) -> None:
        """Becomes the handler, in the main thread and in place of the default only; `thread` is the one that sends."""
        self._thread = thread
        known = signal.getsignal(signal.SIGTERM)
        if known is signal.SIG_DFL and threading.current_thread() is threading.main_thread():
            signal.signal(signal.SIGTERM, self)
            with suppress(OSError, ValueError):
                if self._may_listen:
                    self._listen()
        elif known is not self:
            self._follow(getattr(known, "__self__", None))

    def _follow(self, server: Any) -> None:
        """A server that was there first, as uvicorn is for the application that it loads, puts the default back at its end and then raises
        again what it caught: by then this is the handler."""
        caught = getattr(server, "_captured_signals", None)
        if type(caught) is list:
            server._captured_signals = _Caught(
                caught, lambda: self.install(self._thread), self._on_error
            )

    def listen_no_more(self) -> None:
        """For an event loop that takes it for a fault of the program if it finds another listener, as Trio does."""
        self._may_listen = False
        if threading.current_thread() is threading.main_thread():
            with suppress(OSError, ValueError):
                self._give_back_pipe()

    def uninstall(self) -> None:
        """Gives the default back where this is the handler still; in another thread than the main one that cannot be."""
        if threading.current_thread() is threading.main_thread():
            self._forget()

    def after_fork(self) -> None:
        """In a forked child: the pipe is the parent's, and a child that reports nothing ends as it would."""
        self._ending, self._came_at = False, None
        with suppress(OSError, ValueError):
            self._forget()

    def look(self) -> None:
        """For the agent's thread: where the signal came, and the main thread does not come to the handler, it ends the process itself."""
        if self._pipe is None or self._ending:
            return
        if self._came_at is None:
            with suppress(BlockingIOError):
                if signal.SIGTERM in os.read(self._pipe[0], 65536):
                    self._came_at = time.monotonic()
        elif signal.getsignal(signal.SIGTERM) is not self:
            self._came_at = None
        elif time.monotonic() - self._came_at > HANDLER_SECONDS:
            self._ending = True
            _thread.start_new_thread(self._end_aside, ())

    def __call__(self, number: int, frame: FrameType | None) -> None:
        """Sends what waits and ends the process. A second signal changes nothing; called by a handler that the job set in its place, it
        leaves the end to that."""
        if self._ending or signal.getsignal(signal.SIGTERM) is not self:
            return
        self._ending = True
        try:
            with FaultBarrier(self._on_error):
                self._send_last()
        finally:
            signal.signal(signal.SIGTERM, signal.SIG_DFL)
            os.kill(os.getpid(), signal.SIGTERM)

    def _send_last(self) -> None:
        """In a thread of its own, as the one that is interrupted here may hold any lock; without one of Python's own for that reason."""
        done = _thread.allocate_lock()
        done.acquire()

        def send() -> None:
            try:
                self._stop({"signal": "SIGTERM"})
            finally:
                done.release()

        _thread.start_new_thread(send, ())
        Patience(END_SECONDS, self._thread()).wait(lambda limit: done.acquire(timeout=limit))

    def _end_aside(self) -> None:
        """The same without the main thread, which alone may set handlers: by the system's own call."""
        try:
            with FaultBarrier(self._on_error):
                self._stop({"signal": "SIGTERM"})
        finally:
            try:
                importlib.import_module("ctypes").CDLL(None).signal(int(signal.SIGTERM), None)
            except Exception:  # noqa: BLE001 - there is no such call here, and the process has to end
                os.kill(os.getpid(), signal.SIGKILL)
            os.kill(os.getpid(), signal.SIGTERM)

    def _listen(self) -> None:
        pipe = os.pipe()
        for end in pipe:
            os.set_blocking(end, False)
        known = signal.set_wakeup_fd(pipe[1], warn_on_full_buffer=False)
        self._pipe = pipe
        if known != -1:
            signal.set_wakeup_fd(known, warn_on_full_buffer=False)  # an event loop listens already
            self._close()

    def _forget(self) -> None:
        if signal.getsignal(signal.SIGTERM) is self:
            signal.signal(signal.SIGTERM, signal.SIG_DFL)
        self._give_back_pipe()

    def _give_back_pipe(self) -> None:
        if self._pipe is None:
            return
        known = signal.set_wakeup_fd(-1)
        if known == self._pipe[1]:
            self._close()
        elif known != -1:
            # An event loop took its place, and will want to put it back.
            signal.set_wakeup_fd(known, warn_on_full_buffer=False)
            self._pipe = None

    def _close(self) -> None:
        pipe, self._pipe = self._pipe, None
        for end in pipe or ():
            os.close(end)


class _Caught(list[int]):
    """Signals that a server caught; they are gone through backwards to be raised again, which is announced."""

    def __init__(
        self,
        signals: list[int],
        announce: Callable[[], None],
        on_error: Callable[[Exception], None],
    ) -> None:
        super().__init__(signals)
        self._announce, self._on_error = announce, on_error

    def __reversed__(self) -> Iterator[int]:
        with FaultBarrier(self._on_error):
            self._announce()
        return super().__reversed__()
