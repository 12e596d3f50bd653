"""What each thread of the job is doing now: the innermost open region, and what torch looked up since the thread began."""

from __future__ import annotations

from threading import get_ident
from typing import Any, Protocol

from compilewatch.recording.series_buffer import Line


class Piece(Protocol):
    """The piece of a coroutine or generator that a thread is running."""

    task: object


class Call:
    """What a thread is doing now: the innermost open line, and the guard lookups since the thread began."""

    __slots__ = ("compiled_at", "hits", "line", "misses", "piece", "thread")

    def __init__(self) -> None:
        self.thread = get_ident()
        """Whose it is; 0 once that thread has ended, as the next one may get its number."""
        self.line: Line | None = None
        self.piece: Piece | None = None
        self.hits = 0
        self.misses = 0
        self.compiled_at = 0
        """The step of the recorder in which it compiled last."""


class _End:
    """Lies beside a thread's record, and goes when the thread does."""

    __slots__ = ("_call",)

    def __init__(self, call: Call) -> None:
        self._call = call

    def __del__(self) -> None:
        self._call.thread = 0


def first_call(current: Any) -> Call:
    """The record of a thread that has none yet, kept in what each thread has of its own."""
    call = Call()
    current.end = _End(call)  # before anybody can find the record
    current.call = call
    return call
