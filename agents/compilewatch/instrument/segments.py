"""Segments of a suspended call: guard lookups inside its own segments belong to the call.

Other work on the same thread between the segments does not."""

from __future__ import annotations

import sys
from contextlib import suppress
from contextvars import Token
from typing import Any

from compilewatch.instrument.timed_call import OPEN_CALL, OpenCall, TimedCall
from compilewatch.recording.recorder import RECORDER
from compilewatch.recording.series_buffer import SeriesBuffer
from compilewatch.recording.thread_state import ThreadState


class Segments(TimedCall):
    """A coroutine or generator in progress. `enter` and `leave` surround each segment, on any
    thread. Neither raises."""

    __slots__ = (
        "_lookups_at_start",
        "_open_call",
        "_outer_buffer",
        "_outer_segment",
        "_segment_state",
        "_token",
        "hits",
        "misses",
        "task",
    )

    def __init__(self, base: int, bucket: object = 0) -> None:
        super().__init__(base, bucket, on_one_thread=False)
        self.hits = self.misses = 0
        self.task: object = None
        """The asyncio task that the call belongs to, if any."""
        self._outer_buffer: SeriesBuffer | None = None
        self._open_call = OpenCall(self.buffer)
        self._token: Token[OpenCall] | None = None
        self._segment_state: ThreadState | None = None
        self._outer_segment: Any = None
        self._lookups_at_start = (0, 0)

    def enter(self) -> None:
        """Starts a segment on this thread. Calls until its end are nested in this call and in
        the caller of the segment."""
        try:
            call = RECORDER.get_thread_state()
            self._outer_segment = call.segment
            self.task = current_task()
            self._outer_buffer, self._lookups_at_start = call.buffer, (call.hits, call.misses)
            self._token = OPEN_CALL.set(self._open_call)
            self._segment_state, call.segment, call.buffer = call, self, self.buffer
        except Exception as error:  # noqa: BLE001 - the segment runs in any case
            RECORDER.record_internal_error(error)

    def leave(self) -> None:
        """Ends the segment.

        A segment of another task that ran inside an outer segment, as eager tasks do, does not
        change the lookups of the outer segment."""
        call, self._segment_state = self._segment_state, None
        token, self._token = self._token, None
        if call is None or token is None:
            return
        outer, self._outer_segment = self._outer_segment, None
        call.segment, call.buffer, self._outer_buffer = outer, self._outer_buffer, None
        hits, misses = self._lookups_at_start
        self.hits += call.hits - hits
        self.misses += call.misses - misses
        if outer is not None and outer.task not in (None, self.task):
            call.hits, call.misses = hits, misses
        self.task = None
        with suppress(ValueError):  # the segment ends in another context than it began in
            OPEN_CALL.reset(token)

    def finish(self, error: bool = False) -> None:
        """Ends the call. Later work of its tasks is not nested in it."""
        self._open_call.buffer = None
        super().finish(error)

    def lookups(self) -> tuple[int, int]:
        """Guard hits and misses in all segments."""
        return self.hits, self.misses


def current_task() -> object:
    """The asyncio task that runs on this thread; None without one. Never imports asyncio."""
    events, tasks = sys.modules.get("asyncio.events"), sys.modules.get("asyncio.tasks")
    loop = None if events is None or tasks is None else events._get_running_loop()
    return None if loop is None or tasks is None else tasks.current_task(loop)
