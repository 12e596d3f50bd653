"""How long the job waits at most for the agent's thread: a time in which what the machine withholds from that thread does not count."""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Callable
from pathlib import Path

STEP_SECONDS, LONGEST_STEP_SECONDS = 0.05, 1.0
"""How often it looks; less and less often on a machine that is used up, where looking takes from the thread what little there is."""
_TASKS = Path("/proc/self/task")


class Patience:
    """Seconds that run out while the thread works or hangs; while it is ready to run and is not let, only by what the process does run."""

    def __init__(self, seconds: float, thread: threading.Thread | None) -> None:
        self.left = seconds
        self._thread = "" if thread is None else str(thread.native_id)

    def wait(self, wait: Callable[[float], bool], seconds: float = math.inf) -> bool:
        """Waits by `wait`, which takes the longest time of one try, and spends so many seconds at most. Whether it came to an end."""
        until, step = max(0.0, self.left - seconds), STEP_SECONDS
        while self.left > until:
            began, spent, ran = (
                time.monotonic(),
                time.process_time(),
                _told(self._thread, "schedstat"),
            )
            came = wait(min(step, self.left - until))
            passed, spent = time.monotonic() - began, time.process_time() - spent
            if came or spent > passed / 2 or not self._starved(ran):
                self.left, step = max(until, self.left - min(STEP_SECONDS, passed)), STEP_SECONDS
            else:
                self.left, step = max(until, self.left - spent), min(2 * step, LONGEST_STEP_SECONDS)
            if came:
                return True
        return False

    def _starved(self, ran: bytes) -> bool:
        """Whether the thread is ready to run; or whether it ran, and now waits for another one that is, as Python's threads do."""
        others = set(_threads()) - {str(threading.get_native_id())}
        if self._thread not in others:
            return False
        return _ready(self._thread) or (
            _told(self._thread, "schedstat") != ran and any(map(_ready, others))
        )


def _threads() -> list[str]:
    try:
        return [path.name for path in _TASKS.iterdir()]
    except OSError:
        return []


def _ready(thread: str) -> bool:
    """Whether it runs, or would."""
    return _told(thread, "stat").rpartition(b")")[2].split()[:1] == [b"R"]


def _told(thread: str, name: str) -> bytes:
    """What the system tells of it; nothing, where it tells nothing."""
    try:
        return (_TASKS / thread / name).read_bytes()
    except OSError:
        return b""
