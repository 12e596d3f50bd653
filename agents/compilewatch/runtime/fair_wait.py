"""Fair wait: a bounded wait for the agent's thread that excludes the time in which the machine
gives that thread no CPU.
"""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Callable
from pathlib import Path

STEP_SECONDS, LONGEST_STEP_SECONDS = 0.05, 1.0
"""Polling interval.

It doubles on an overloaded machine, where polling would take CPU time from the thread.
"""
_TASKS = Path("/proc/self/task")


class FairWait:
    """A time budget for waiting.

    The budget runs down by wall time while the thread works or hangs. While the thread is runnable
    and gets no CPU, it runs down only by the CPU time of the process.
    """

    def __init__(self, seconds: float, thread: threading.Thread | None) -> None:
        self.remaining_seconds = seconds
        self._thread = "" if thread is None else str(thread.native_id)

    def wait(self, wait: Callable[[float], bool], seconds: float = math.inf) -> bool:
        """Calls `wait` repeatedly with a timeout per try, and spends at most `seconds` of the
        budget. Returns whether `wait` succeeded.
        """
        until, step = max(0.0, self.remaining_seconds - seconds), STEP_SECONDS
        while self.remaining_seconds > until:
            start, spent, ran_before = (
                time.monotonic(),
                time.process_time(),
                _read_task_file(self._thread, "schedstat"),
            )
            succeeded = wait(min(step, self.remaining_seconds - until))
            passed, spent = time.monotonic() - start, time.process_time() - spent
            if succeeded or spent > passed / 2 or not self._starved(ran_before):
                self.remaining_seconds, step = (
                    max(until, self.remaining_seconds - min(STEP_SECONDS, passed)),
                    STEP_SECONDS,
                )
            else:
                self.remaining_seconds, step = (
                    max(until, self.remaining_seconds - spent),
                    min(2 * step, LONGEST_STEP_SECONDS),
                )
            if succeeded:
                return True
        return False

    def _starved(self, ran_before: bytes) -> bool:
        """Returns whether the thread is runnable without a CPU, or ran and now waits for another
        runnable thread, for example for the GIL.
        """
        others = set(_threads()) - {str(threading.get_native_id())}
        if self._thread not in others:
            return False
        return _ready(self._thread) or (
            _read_task_file(self._thread, "schedstat") != ran_before and any(map(_ready, others))
        )


def _threads() -> list[str]:
    try:
        return [path.name for path in _TASKS.iterdir()]
    except OSError:
        return []


def _ready(thread: str) -> bool:
    """Returns whether the thread is running or runnable."""
    return _read_task_file(thread, "stat").rpartition(b")")[2].split()[:1] == [b"R"]


def _read_task_file(thread: str, name: str) -> bytes:
    """Reads a file of the thread in /proc; empty if the system does not provide it."""
    try:
        return (_TASKS / thread / name).read_bytes()
    except OSError:
        return b""
