"""Watched calls that are only counted: nobody notes that they are under way, so what happens seldom finds them by their frames."""

from __future__ import annotations

import itertools
import sys
import threading
import time
from types import CodeType, FrameType
from typing import TypeVar

from compilewatch.recording.buffer_types import Buffer, UntimedSampling

T = TypeVar("T", bound=Buffer)

LONGEST_SECONDS = 86400.0
"""That a record may say a compilation took."""
COUNTING: set[CodeType] = set()
"""The code of what takes tickets; a frame of it that holds one says which call it is."""


def counted_in(frame: FrameType | None) -> list[UntimedSampling]:
    """Of whose calls those in this stack are that hold a ticket, from the innermost outward."""
    found: list[UntimedSampling] = []
    while frame is not None:
        if frame.f_code in COUNTING:
            names = frame.f_locals
            if "ticket" in names:
                found.append(names["ticket"])
        frame = frame.f_back
    return found


def counted_calls() -> dict[int, list[UntimedSampling]]:
    """The same of every thread that has any, by its number. What the calls were given is kept by nothing here: a frame that stayed in a
    variable would refer to itself, and keep all arguments until the garbage collector comes."""
    found: dict[int, list[UntimedSampling]] = {}
    frame, frames = None, sys._current_frames()
    own = sys._getframe()
    try:
        for thread, frame in frames.items():
            held = counted_in(frame)
            if held:
                # Where greenlets run, a thread goes by another number here than in its own calls.
                found[threading.get_ident() if frame is own else thread] = held
    finally:
        frames.clear()
        del frame, own
    return found


def innermost(noted: Buffer | None, frame: FrameType | None) -> Buffer | None:
    """The line of the watched call in this stack; `noted` is that of the innermost which says that it is under way."""
    held = counted_in(frame)
    if not held or held[0].line is None:
        return noted
    if noted is None or held[0].nested:
        return held[0].line
    # A region that is called in no other stands around what is noted.
    held[0].line.holds_another()
    return noted


class Meeting:
    """A counted call that met a compilation."""

    __slots__ = ("calls", "line", "sampling", "seconds", "since", "thread")

    def __init__(self, thread: int, sampling: UntimedSampling, line: Buffer, since: float) -> None:
        self.thread, self.sampling, self.line, self.since = thread, sampling, line, since
        self.calls: list[float] = []
        """Where it goes, and what the compilation took of it, once that is over."""
        self.seconds = 0.0


class Met:
    """Counted calls that met a compilation. They are reported with what it took of them, by the next call that comes by after their end."""

    def __init__(self) -> None:
        self._numbers = itertools.count()
        self._under_way: dict[int, Meeting] = {}
        self._over: dict[int, Meeting] = {}
        """Those after the compilation."""

    def begin(self, seconds: float) -> None:
        """A compilation begins; or one is over in this thread of which nothing was heard before, and took so long."""
        now, mine = time.perf_counter(), threading.get_ident()
        # The seconds come from a clock that may be set while it compiles.
        since = now - seconds if 0.0 <= seconds <= LONGEST_SECONDS else now
        for thread, held in counted_calls().items():
            for sampling in held:
                if sampling.line is not None:
                    sampling.undone.append(1)
                    met = Meeting(thread, sampling, sampling.line, since if thread == mine else now)
                    self._under_way[next(self._numbers)] = met

    def look(self, calls: dict[int, list[UntimedSampling]]) -> None:
        """Those that ended before the compilation did not wait for it: they count like any other."""
        for number, met in list(self._under_way.items()):
            if (
                met.sampling not in calls.get(met.thread, ())
                and self._under_way.pop(number, None) is not None
            ):
                met.sampling.undone.append(-1)

    def end(self, others: bool) -> None:
        """A compilation is over, whether or not others are under way."""
        if others or not self._under_way:
            return
        self.look(counted_calls())
        now = time.perf_counter()
        for number in list(self._under_way):
            met = self._under_way.pop(number, None)
            if met is not None:
                met.calls, met.seconds = met.line.waited(met.since), now - met.since
                self._over[number] = met

    def failed(self, sampling: UntimedSampling) -> bool:
        """A call of it raised in this thread: whether that had met a compilation, of which nothing is told then."""
        mine = threading.get_ident()
        for calls in (self._under_way, self._over):
            for number, met in list(calls.items()):
                if (
                    met.thread == mine
                    and met.sampling is sampling
                    and calls.pop(number, None) is not None
                ):
                    return True
        return False

    def tell(self) -> None:
        """Counts those that met a compilation which is over, and have ended: until then they may fail."""
        calls = counted_calls() if self._over else {}
        for number, met in list(self._over.items()):
            if (
                met.sampling not in calls.get(met.thread, ())
                and self._over.pop(number, None) is not None
            ):
                met.calls.append(met.seconds)
