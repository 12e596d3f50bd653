"""When the warm-up of a region is over: from then on a call that waits for a compilation is a stalled call."""

from __future__ import annotations

import math
from time import perf_counter
from typing import Protocol

from compilewatch.recording.buffer_types import Buffer

MOST_CALLS = 50
"""Calls of a region that may compile or wait before any is served: more than the shapes that a model is warmed up with."""


class Durations(Protocol):
    """Takes the seconds of calls, one by one."""

    def append(self, seconds: float, /) -> None: ...


class WarmUp:
    """The warm-up of one region, for all its shape buckets and threads. It ends once and never restarts."""

    __slots__ = ("_lines", "_waited", "disturbed", "ended_at")

    def __init__(self, ended_at: float = math.inf) -> None:
        self.ended_at = ended_at
        """By `time.perf_counter`: a call that began before belongs to the warm-up."""
        self.disturbed = False
        """Whether a call compiled, or waited for a compilation."""
        self._lines: list[Buffer] = []
        self._waited = 0

    @property
    def over(self) -> bool:
        """Whether it has ended."""
        return self.ended_at < math.inf

    def add(self, line: Buffer) -> None:
        """The line's calls may end it."""
        if not self.over:
            self._lines.append(line)
        line.aim()

    def disturb(self) -> None:
        """A call compiled, or waited for a compilation: the next call that did not ends the warm-up. What compiles at each call never
        has such a call, so that many end it too."""
        self._waited += 1
        if not self.disturbed:
            self.disturbed = True
            self._aim()
        if self._waited >= MOST_CALLS and not self.over:
            self.end()

    def end(self) -> None:
        """The region was served compiled, or the job says that it is ready."""
        self.ended_at = min(self.ended_at, perf_counter())
        self._aim()

    def _aim(self) -> None:
        for line in list(self._lines):
            line.aim()


class Ending:
    """Replaces a list in which the first call ends the warm-up. A line points past it then, so that later calls cost nothing more."""

    __slots__ = ("_calls", "_warm_up")

    def __init__(self, warm_up: WarmUp, calls: Durations) -> None:
        self._warm_up, self._calls = warm_up, calls

    def append(self, seconds: float, /) -> None:
        """Adds the call, and ends the warm-up."""
        self._calls.append(seconds)
        self._warm_up.end()


class WarmUps:
    """Those of all regions, by name. Eager calls that the agent times for comparison have one of their own."""

    def __init__(self) -> None:
        self._found: dict[tuple[str, bool], WarmUp] = {}
        self._ready = False

    def of(self, region: str, eager: bool) -> WarmUp:
        """That of the region; none is left after `ready()`."""
        return self._found.setdefault(
            (region, eager), WarmUp(-math.inf if self._ready else math.inf)
        )

    def end(self) -> None:
        """The job is ready: every warm-up is over, and no further one begins."""
        self._ready = True
        for warm_up in list(self._found.values()):
            warm_up.end()

    def after_fork(self) -> None:
        """In a forked child: what had ended stays ended, the rest begins there."""
        self._found = {key: WarmUp(warm_up.ended_at) for key, warm_up in self._found.items()}


NONE_LEFT = WarmUp(-math.inf)
"""Over from the start."""
