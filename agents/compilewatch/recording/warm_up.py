"""Warm-up of a region: after its end, a call that waits for a compilation is a stalled call."""

from __future__ import annotations

import math
from time import perf_counter
from typing import Protocol

from compilewatch.recording.buffer_types import Buffer

MAX_WARM_UP_CALLS = 50
"""Maximum calls of a region that may compile or wait before one is served. Exceeds the number of
shapes that usually warm up a model."""


class DurationSink(Protocol):
    """Receives the seconds of calls, one at a time."""

    def append(self, seconds: float, /) -> None: ...


class WarmUp:
    """The warm-up of one region, shared by its shape buckets and threads. It ends once and never
    restarts."""

    __slots__ = ("_buffers", "_wait_count", "ended_at", "has_waited")

    def __init__(self, ended_at: float = math.inf) -> None:
        self.ended_at = ended_at
        """End by `time.perf_counter`. A call that began earlier belongs to the warm-up."""
        self.has_waited = False
        """True after a call that compiled or waited for a compilation."""
        self._buffers: list[Buffer] = []
        self._wait_count = 0

    @property
    def is_over(self) -> bool:
        """True after the end of the warm-up."""
        return self.ended_at < math.inf

    def add(self, buffer: Buffer) -> None:
        """Adds a buffer whose calls may end the warm-up."""
        if not self.is_over:
            self._buffers.append(buffer)
        buffer.route_calls()

    def record_wait(self) -> None:
        """Records a call that compiled or waited for a compilation.

        The next call that did neither ends the warm-up. A region that compiles at each call has
        no such call, so `MAX_WARM_UP_CALLS` calls end the warm-up too."""
        self._wait_count += 1
        if not self.has_waited:
            self.has_waited = True
            self._route_calls()
        if self._wait_count >= MAX_WARM_UP_CALLS and not self.is_over:
            self.end()

    def end(self) -> None:
        """Ends the warm-up: compiled code served the region, or the job called `ready()`."""
        self.ended_at = min(self.ended_at, perf_counter())
        self._route_calls()

    def _route_calls(self) -> None:
        for buffer in list(self._buffers):
            buffer.route_calls()


class WarmUpEnd:
    """Replaces a list during the warm-up. The first call ends the warm-up; the buffer then
    points at the list again, so later calls cost nothing more."""

    __slots__ = ("_calls", "_warm_up")

    def __init__(self, warm_up: WarmUp, calls: DurationSink) -> None:
        self._warm_up, self._calls = warm_up, calls

    def append(self, seconds: float, /) -> None:
        """Adds the call and ends the warm-up."""
        self._calls.append(seconds)
        self._warm_up.end()


class WarmUps:
    """The warm-ups of all regions, by name. Eager calls that the agent times for comparison have
    a separate warm-up."""

    def __init__(self) -> None:
        self._by_region: dict[tuple[str, bool], WarmUp] = {}
        self._is_ready = False

    def find_warm_up(self, region: str, eager: bool) -> WarmUp:
        """The warm-up of the region. After `ready()`, a new one is already over."""
        return self._by_region.setdefault(
            (region, eager), WarmUp(-math.inf if self._is_ready else math.inf)
        )

    def end_all(self) -> None:
        """Ends every warm-up at `ready()`. No further warm-up begins."""
        self._is_ready = True
        for warm_up in list(self._by_region.values()):
            warm_up.end()

    def reset_after_fork(self) -> None:
        """Resets the warm-ups in a forked child. Those that had ended stay ended; the others
        start again."""
        self._by_region = {
            key: WarmUp(warm_up.ended_at) for key, warm_up in self._by_region.items()
        }


NO_WARM_UP = WarmUp(-math.inf)
"""Over from the start."""
