"""What each thread of the job is doing now: the innermost open region, and what torch looked up since the thread began."""

from __future__ import annotations

from threading import get_ident
from typing import Any, Protocol

from compilewatch.lines import Line


class Piece(Protocol):
    """The piece of a coroutine or generator that a thread is running; what it calls is not nested in it, as others run in between."""

    line: Line
    around: Line | None
    task: object


class Call:
    """What a thread is doing now: the innermost open line, and the guard lookups since the thread began."""

    __slots__ = ("hits", "line", "misses", "piece", "thread")

    def __init__(self) -> None:
        self.thread = get_ident()
        """Whose it is; 0 once that thread has ended, as the next one may get its number."""
        self.line: Line | None = None
        self.piece: Piece | None = None
        self.hits = 0
        self.misses = 0

    def innermost(self) -> Line | None:
        """The line of what runs now, a piece of a coroutine or generator included."""
        piece = self.piece
        return piece.line if piece is not None and piece.around is self.line else self.line


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
