"""Thread state: the innermost open region of each thread, and its guard lookups since the thread
began."""

from __future__ import annotations

from threading import get_ident
from typing import Any, Protocol

from compilewatch.recording.series_buffer import SeriesBuffer


class Segment(Protocol):
    """The segment of a coroutine or generator that a thread runs."""

    task: object


class ThreadState:
    """The innermost open buffer of a thread, and its guard lookups since the thread began."""

    __slots__ = ("buffer", "compile_step", "hits", "misses", "segment", "thread_id")

    def __init__(self) -> None:
        self.thread_id = get_ident()
        """ID of the owning thread; 0 after that thread ended, because the next thread may get
        the same ID."""
        self.buffer: SeriesBuffer | None = None
        self.segment: Segment | None = None
        self.hits = 0
        self.misses = 0
        self.compile_step = 0
        """The recorder's step of the last compilation on this thread."""


class _ThreadEnd:
    """Held next to the state of a thread and deleted with the thread. Its `__del__` clears the
    owner."""

    __slots__ = ("_call",)

    def __init__(self, call: ThreadState) -> None:
        self._call = call

    def __del__(self) -> None:
        self._call.thread_id = 0


def create_thread_state(current: Any) -> ThreadState:
    """Creates the state of a thread and stores it in the thread-local."""
    call = ThreadState()
    current.end = _ThreadEnd(call)  # before other code can find the state
    current.call = call
    return call
