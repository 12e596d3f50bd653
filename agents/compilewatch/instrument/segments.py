"""A call that runs in pieces and is suspended between them: what torch looks up inside its own pieces belongs to it, whoever runs on
its thread in between."""

from __future__ import annotations

import sys
from contextlib import suppress
from contextvars import Token
from typing import Any

from compilewatch.instrument.timed_call import OPEN, Open, Running
from compilewatch.recording.recorder import RECORDER
from compilewatch.recording.series_buffer import Line
from compilewatch.recording.thread_state import Call


class Pieces(Running):
    """A coroutine or generator under way. `enter` and `leave` stand around each piece, on whatever thread it runs; neither raises."""

    __slots__ = (
        "_around",
        "_before",
        "_now",
        "_open",
        "_outer_piece",
        "_token",
        "hits",
        "misses",
        "task",
    )

    def __init__(self, base: int, bucket: object = 0) -> None:
        super().__init__(base, bucket, stays=False)
        self.hits = self.misses = 0
        self.task: object = None
        """The asyncio task that it is a part of, if any."""
        self._around: Line | None = None
        self._open = Open(self.line)
        self._token: Token[Open] | None = None
        self._now: Call | None = None
        self._outer_piece: Any = None
        self._before = (0, 0)

    def enter(self) -> None:
        """A piece begins on this thread: what is called until it ends is inside this call, as is what the piece was called in."""
        try:
            call = RECORDER.call()
            self._outer_piece = call.piece
            self.task = current_task()
            self._around, self._before = call.line, (call.hits, call.misses)
            self._token = OPEN.set(self._open)
            self._now, call.piece, call.line = call, self, self.line
        except Exception as error:  # noqa: BLE001 - the piece runs in any case
            RECORDER.internal_error(error)

    def leave(self) -> None:
        """The piece is over. One of another task that ran inside a piece, as eager tasks do, leaves that one's count as it was."""
        call, self._now = self._now, None
        token, self._token = self._token, None
        if call is None or token is None:
            return
        outer, self._outer_piece = self._outer_piece, None
        call.piece, call.line, self._around = outer, self._around, None
        hits, misses = self._before
        self.hits += call.hits - hits
        self.misses += call.misses - misses
        if outer is not None and outer.task not in (None, self.task):
            call.hits, call.misses = hits, misses
        self.task = None
        with suppress(ValueError):  # the piece ends in another context than it began in
            OPEN.reset(token)

    def finish(self, error: bool = False) -> None:
        """The call is over, and what its tasks do from now on is not inside it."""
        self._open.line = None
        super().finish(error)

    def lookups(self) -> tuple[int, int]:
        """Hits and misses in all of its pieces."""
        return self.hits, self.misses


def current_task() -> object:
    """The asyncio task that runs on this thread; None without one, and asyncio is never imported for it."""
    events, tasks = sys.modules.get("asyncio.events"), sys.modules.get("asyncio.tasks")
    loop = None if events is None or tasks is None else events._get_running_loop()
    return None if loop is None or tasks is None else tasks.current_task(loop)
