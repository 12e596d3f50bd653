"""SIGTERM handler: sends the open window in bounded time before the process ends, even if the main
thread does not reach Python code.
"""

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

from compilewatch.runtime.fair_wait import FairWait
from compilewatch.runtime.fault_barrier import FaultBarrier

END_SECONDS = 2.0
"""Longest delay of the process end for sending the last window."""
HANDLER_SECONDS = 1.0
"""Longest wait for the main thread to run the handler; C code delays it until it returns."""


class SigtermHandler:
    """A SIGTERM handler for jobs without their own.

    It ends the process as the default does, and compares equal to the default: a framework that
    checks for a handler finds none and sets its own.
    """

    def __init__(
        self, stop: Callable[[dict[str, Any]], None], on_error: Callable[[Exception], None]
    ) -> None:
        self._stop, self._on_error = stop, on_error
        self._thread: Callable[[], threading.Thread | None] = lambda: None
        self._ending = False
        self._pipe: tuple[int, int] | None = None
        """Wakeup pipe: Python immediately writes the number of each signal to it."""
        self._may_listen = True
        self._signalled_at: float | None = None

    def __eq__(self, other: object) -> bool:
        return other is self or (isinstance(other, int) and other == signal.SIG_DFL)

    def __hash__(self) -> int:
        return id(self)

    def install(self, thread: Callable[[], threading.Thread | None]) -> None:
        """Installs the handler, on the main thread and only in place of the default.

        `thread` returns the sending thread.
        """
        self._thread = thread
        current = signal.getsignal(signal.SIGTERM)
        if current is signal.SIG_DFL and threading.current_thread() is threading.main_thread():
            signal.signal(signal.SIGTERM, self)
            with suppress(OSError, ValueError):
                if self._may_listen:
                    self._listen()
        elif current is not self:
            self._reinstall_after(getattr(current, "__self__", None))

    def _reinstall_after(self, server: Any) -> None:
        """Reinstalls the handler after a server that was there first.

        A server such as uvicorn restores the default at its end and then raises the caught signals
        again; by then this handler must be installed.
        """
        caught = getattr(server, "_captured_signals", None)
        if type(caught) is list:
            server._captured_signals = _CaughtSignals(
                caught, lambda: self.install(self._thread), self._on_error
            )

    def stop_listening(self) -> None:
        """Removes the wakeup pipe for event loops such as Trio's, which treat another listener as
        an error.
        """
        self._may_listen = False
        if threading.current_thread() is threading.main_thread():
            with suppress(OSError, ValueError):
                self._release_pipe()

    def uninstall(self) -> None:
        """Restores the default if this handler is still installed.

        Only the main thread can do so.
        """
        if threading.current_thread() is threading.main_thread():
            self._restore_default()

    def after_fork(self) -> None:
        """Resets the state in a forked child: the pipe belongs to the parent, and a child that does
        not report ends by default.
        """
        self._ending, self._signalled_at = False, None
        with suppress(OSError, ValueError):
            self._restore_default()

    def poll(self) -> None:
        """Ends the process from the agent's thread if the signal arrived and the main thread does
        not run the handler in time.
        """
        if self._pipe is None or self._ending:
            return
        if self._signalled_at is None:
            with suppress(BlockingIOError):
                if signal.SIGTERM in os.read(self._pipe[0], 65536):
                    self._signalled_at = time.monotonic()
        elif signal.getsignal(signal.SIGTERM) is not self:
            self._signalled_at = None
        elif time.monotonic() - self._signalled_at > HANDLER_SECONDS:
            self._ending = True
            _thread.start_new_thread(self._end_without_main_thread, ())

    def __call__(self, number: int, frame: FrameType | None) -> None:
        """Sends the queued windows and ends the process.

        A second signal has no effect. If a handler of the job calls this one, that handler ends the
        process.
        """
        if self._ending or signal.getsignal(signal.SIGTERM) is not self:
            return
        self._ending = True
        try:
            with FaultBarrier(self._on_error):
                self._send_last_window()
        finally:
            signal.signal(signal.SIGTERM, signal.SIG_DFL)
            os.kill(os.getpid(), signal.SIGTERM)

    def _send_last_window(self) -> None:
        """Sends in a separate thread, because the interrupted main thread may hold any lock.

        Uses the low-level `_thread` for the same reason.
        """
        done = _thread.allocate_lock()
        done.acquire()

        def send() -> None:
            try:
                self._stop({"signal": "SIGTERM"})
            finally:
                done.release()

        _thread.start_new_thread(send, ())
        FairWait(END_SECONDS, self._thread()).wait(lambda limit: done.acquire(timeout=limit))

    def _end_without_main_thread(self) -> None:
        """Sends and ends the process without the main thread.

        Only the main thread may set handlers in Python, so this calls the C function `signal`.
        """
        try:
            with FaultBarrier(self._on_error):
                self._stop({"signal": "SIGTERM"})
        finally:
            try:
                importlib.import_module("ctypes").CDLL(None).signal(int(signal.SIGTERM), None)
            except Exception:  # noqa: BLE001 - the call is missing, and the process must end
                os.kill(os.getpid(), signal.SIGKILL)
            os.kill(os.getpid(), signal.SIGTERM)

    def _listen(self) -> None:
        pipe = os.pipe()
        for end in pipe:
            os.set_blocking(end, False)
        current = signal.set_wakeup_fd(pipe[1], warn_on_full_buffer=False)
        self._pipe = pipe
        if current != -1:
            # An event loop already listens.
            signal.set_wakeup_fd(current, warn_on_full_buffer=False)
            self._close()

    def _restore_default(self) -> None:
        if signal.getsignal(signal.SIGTERM) is self:
            signal.signal(signal.SIGTERM, signal.SIG_DFL)
        self._release_pipe()

    def _release_pipe(self) -> None:
        if self._pipe is None:
            return
        current = signal.set_wakeup_fd(-1)
        if current == self._pipe[1]:
            self._close()
        elif current != -1:
            # An event loop has replaced the pipe and may restore it later.
            signal.set_wakeup_fd(current, warn_on_full_buffer=False)
            self._pipe = None

    def _close(self) -> None:
        pipe, self._pipe = self._pipe, None
        for end in pipe or ():
            os.close(end)


class _CaughtSignals(list[int]):
    """Signals that a server caught.

    The server iterates over them in reverse to raise them again; the iteration calls `announce`
    first.
    """

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
