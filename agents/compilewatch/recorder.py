"""The open window: what the wrappers and the sources write to from any thread, without a lock and without I/O."""

from __future__ import annotations

import itertools
import sys
import threading
import time
from collections.abc import Callable
from typing import Any

from compilewatch.lines import OTHER, Call, Line, Probe, Spec
from compilewatch.windows import EventLog, region_key, regions_merge
from compilewatch.wire.report import EAGER_CAUSES, Compile, Fact, Finding, Gauges, Region, Report

MAX_LINES = 256
MAX_KEYS = 10_000
MAX_SPECS = 1_000
MAX_INTERNAL_ERRORS = 20
NESTED = 128  # the bit of a line's key that says "inside another region"; below it stands the bucket


Lines = dict[Any, Line]


class Recorder:
    """One per process, there from the start; `lines` is None while the agent is off."""

    def __init__(self) -> None:
        self.lines: Lines | None = None
        self.epoch = 0
        """Changes whenever a compilation starts or ends: a call that saw it change compiled, or waited for one."""
        self.token = 0
        """Not 0 while guard lookups are being counted; another value for each stretch of counting."""
        self.current = threading.local()
        self.ready_at: float | None = None
        self.internal_errors = 0
        self.wake: Callable[[], None] = lambda: None
        """Called when a line was made: the client starts the thread of a forked child by it."""
        self._probe_for: Callable[[Line], Probe] | None = None
        self.last_error = ""
        self.off_for_good = False
        """Set when the settings switch the agent off: what is watched from then on is not even wrapped."""
        self._specs = [Spec(OTHER)]
        self._bases: dict[tuple[str, str, str, int, int], int] = {}
        self._steps = itertools.count(1)
        self._draining = threading.Lock()
        self._reset()
        self._forget()

    def _reset(self) -> None:
        self._all_lines: list[Line] = []
        self._log = EventLog()
        self._gauges = Gauges()
        self._told: set[int] = set()
        self._compiling: dict[int, list[tuple[str, float]]] = {}

    def _forget(self) -> None:
        self._latched: dict[str, str] = {}
        self._latched_regions: dict[str, str] = {}
        self._outer_of: dict[str, str] = {}

    # ---- for the client

    def start(self) -> None:
        """Begins to record into an empty window."""
        self._reset()
        self._forget()
        self.internal_errors = 0
        self.ready_at = None
        self.lines = {}

    def stop(self) -> None:
        """Stops recording; wrappers call straight through from now on."""
        self.lines = None
        self.token = 0
        self._probe_for = None

    def after_fork(self) -> None:
        """In a forked child: new buffers, new lock; what the parent recorded stays the parent's, what is latched is latched here too."""
        self._draining = threading.Lock()
        # Wrappers hold the thread-local itself: it is emptied, not replaced, or a child's guard lookups would meet no call of theirs.
        self.current.__dict__.clear()
        self._reset()
        if self.lines is not None:
            self.lines = {}

    def drain(self) -> int:
        """Bins what the lines hold and answers how many calls that were; other drainers are waited for."""
        with self._draining:
            lines = list(self._all_lines)
            count = sum(line.waiting() for line in lines)
            for line in lines:
                line.drain()
        return count

    def relieve(self, line: Line) -> None:
        """Bins a line that grew long before the agent's thread came by; never waits."""
        if self._draining.acquire(blocking=False):
            try:
                line.drain()
            finally:
                self._draining.release()

    def close(self, seq: int, start: float, end: float) -> Report:
        """The window that ends now as a report; a new one is open from here on. Losses are the sender's to fill in."""
        with self._draining:
            closed = [line.close() for line in list(self._all_lines)]
        regions = regions_merge([region for region in closed if region])
        report = self._log.close(Report((seq, seq), (start, end), regions))
        report.gauges = self._gauges
        report.gauges.compiling_for = self.compiling_for()
        report.gauges.degraded_frames = len(self._latched)
        self._gauges = Gauges()
        return report

    @property
    def truncated_events(self) -> int:
        """Events whose samples were cut since the start."""
        return self._log.truncated

    def time_with(self, probe_for: Callable[[Line], Probe] | None) -> None:
        """Has the calls of all lines, present and future, timed on the GPU, or no longer."""
        self._probe_for = probe_for
        for line in list(self._all_lines):
            line.probe = None if probe_for is None else probe_for(line)

    # ---- for the wrappers

    def register(self, spec: Spec) -> int:
        """The base of the spec's line keys: the same for the same spec, and that of `other` when there are too many."""
        key = (spec.name, spec.mode, spec.runtime, id(spec.items), id(spec.bucket))
        if key not in self._bases and len(self._specs) < MAX_SPECS:
            # Appended first, then looked up: two threads that register at once must not get one number.
            self._specs.append(spec)
            self._bases[key] = self._specs.index(spec) << 8
        return self._bases.get(key, 0)

    def call(self) -> Call:
        """The calling thread's record; `hits` and `misses` are for the guard hook to raise."""
        try:
            found: Call = self.current.call
        except AttributeError:
            found = self.current.call = Call()
        return found

    def line(self, key: Any) -> Line:
        """The line of a key that `lines` does not have yet, or one that nobody reads if the agent fails here."""
        try:
            line = self._line_for(key)
            if self.lines is not None and len(self.lines) < MAX_KEYS:
                self.lines[key] = line
            return line
        except Exception as error:  # noqa: BLE001 - this runs inside a call of the job
            self.internal_error(error)
            return Line(Spec(""), Region("", 0))

    def _line_for(self, key: Any) -> Line:
        """The key is a whole number with a power-of-two bucket in its low bits, or a tuple (base, nested, bucket)."""
        if isinstance(key, tuple):
            number, nested, bucket = key[0] >> 8, bool(key[1]), str(key[2])
        else:
            code = key & (NESTED - 1)
            number, nested, bucket = key >> 8, bool(key & NESTED), f"2^{code - 1}" if code else ""
        spec = self._specs[number]
        name = spec.name
        if len(self._all_lines) >= MAX_LINES:
            name = bucket = OTHER
        region = Region(name, 0, spec.admit(bucket) if bucket else "", spec.mode, spec.runtime or _runtime(), not nested)
        line = self._line_with(region, spec)
        self._note_outer(line, nested)
        if spec.options and number not in self._told:
            self._told.add(number)
            self.fact("mark", {"name": "torch.compile", "region": spec.name, **spec.options})
        self.wake()
        return line

    def _line_with(self, region: Region, spec: Spec) -> Line:
        """The line of this region's key, shared by all keys that end in the same bucket."""
        for line in self._all_lines:
            if (line.spec is spec or region.name == OTHER) and region_key(line.region) == region_key(region):
                return line
        line = Line(spec, region)
        if self._probe_for is not None:
            line.probe = self._probe_for(line)
        self._point(line)
        self._all_lines.append(line)
        return line

    def _note_outer(self, line: Line, nested: bool) -> None:
        outer = self.call().line
        if nested and outer is not None and outer.region.name != line.region.name:
            self._outer_of.setdefault(line.region.name, outer.region.name)

    # ---- for the sources

    def compile_started(self, frame: str) -> None:
        """A compilation began in this thread; `compile_stopped` must follow."""
        self.epoch = next(self._steps)
        self._compiling.setdefault(threading.get_ident(), []).append((frame, time.monotonic()))

    def compile_stopped(self) -> None:
        """The compilation that began last in this thread is over, whatever came of it."""
        self.epoch = next(self._steps)
        thread = threading.get_ident()
        stack = self._compiling.get(thread)
        if stack:
            stack.pop()
            if not stack:
                self._compiling.pop(thread, None)

    def compile_finished(self, compile: Compile) -> None:
        """The record of a compilation that is over; works without a start. Sets `in_request` when a watched call waited for it."""
        self.epoch = next(self._steps)
        line = self.call().line
        if line is not None:
            compile.in_request = compile.in_request or self.ready_at is not None or line.served
        self._log.compile(compile)

    def compiling_for(self) -> float:
        """Seconds since the oldest compilation that is still running began; 0.0 when none is."""
        starts = [stack[0][1] for stack in list(self._compiling.values()) if stack]
        return time.monotonic() - min(starts) if starts else 0.0

    def compiling(self) -> list[str]:
        """The frames that are being compiled now."""
        return [stack[-1][0] for stack in list(self._compiling.values()) if stack]

    def finding(self, kind: str, text: str, where: str = "", count: int = 1) -> None:
        """A graph break, a failed guard, a fallback and so on; like ones are added up."""
        self._log.finding(Finding(kind, text, where, count))

    def fact(self, kind: str, data: dict[str, Any] | None = None) -> None:
        """Something certain, at this moment."""
        self._log.fact(Fact(kind, time.time(), data or {}))

    def gauge(self, name: str, value: Any) -> None:
        """The latest value of a field of `Gauges`, `devices` included."""
        setattr(self._gauges, name, value)

    def count_lookups(self, on: bool) -> None:
        """Says whether guard lookups are being counted from now on; calls that began before the change stay unsampled."""
        self.token = next(self._steps) if on else 0

    def latch(self, frame: str, cause: str, **data: Any) -> None:
        """The frame runs eager from now on: calls of the regions open in this thread that hit no guard count as `cause`.
        An empty frame means the whole process, for example a stance."""
        if cause not in EAGER_CAUSES:
            raise ValueError(f"unknown cause {cause!r}")
        known = self._latched.get(frame) == cause
        if frame:
            self._latched[frame] = cause
        line = self.call().line
        if not frame:
            self._latched_regions[""] = cause
        elif line is not None:
            name: str | None = line.region.name
            while name and name not in self._latched_regions:
                self._latched_regions[name] = cause
                name = self._outer_of.get(name)
        self._repoint()
        if frame and not known:
            self.fact("latched_eager", {"frame": frame, "cause": cause, **data})

    def unlatch(self, frame: str | None = None) -> None:
        """Takes back what `latch` said: of the whole process for an empty frame, of everything without one (torch was reset)."""
        if frame is None:
            self._latched.clear()
            self._latched_regions.clear()
        elif frame:
            self._latched.pop(frame, None)
        else:
            self._latched_regions.pop("", None)
        self._repoint()

    def _repoint(self) -> None:
        for line in list(self._all_lines):
            self._point(line)

    def _point(self, line: Line) -> None:
        cause = self._latched_regions.get(line.region.name) or self._latched_regions.get("")
        line.idle = line.eager[cause] if cause else line.unknown

    def internal_error(self, error: BaseException) -> None:
        """Counts a fault of the agent's own; after 20 the agent switches itself off."""
        self.internal_errors += 1
        self.last_error = f"{type(error).__name__}: {error}"
        if self.internal_errors == MAX_INTERNAL_ERRORS:
            self.stop()
            self.fact("mark", {"name": "agent switched itself off", "reason": self.last_error[:200]})


def _runtime() -> str:
    """What runs a callable that `watch` was told nothing about."""
    return "torch.compile" if "torch._dynamo" in sys.modules else "eager"


RECORDER = Recorder()
"""The process's own; wrappers made before `init` already write to it."""
