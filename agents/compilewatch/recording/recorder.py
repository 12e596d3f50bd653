"""The open window: what the wrappers and the sources write to from any thread, without a lock and without I/O."""

from __future__ import annotations

import itertools
import sys
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from typing import Any, cast

from compilewatch.config import Config
from compilewatch.recording import untimed_calls
from compilewatch.recording.active_compiles import Compiling
from compilewatch.recording.aggregate import EventLog, region_key, regions_merge
from compilewatch.recording.call_sampling import Sampler
from compilewatch.recording.compile_requests import Requests
from compilewatch.recording.eager_tracker import LatchedRegions
from compilewatch.recording.runtime_names import EAGER
from compilewatch.recording.series_buffer import (
    LONG,
    LOOK_SECONDS,
    NOWHERE,
    OTHER,
    PAUSE_SECONDS,
    Line,
    Probe,
    Spec,
    Specs,
)
from compilewatch.recording.thread_state import Call, first_call
from compilewatch.recording.warm_up import Durations, WarmUps
from compilewatch.wire.messages import Compile, Fact, Finding, Gauges, Region, Report
from compilewatch.wire.sketch import Sketch

MAX_LINES, MAX_KEYS = 256, 10_000
MAX_INTERNAL_ERRORS = 20
Lines = dict[Any, Line]


class Recorder:
    """One per process, there from the start; `lines` is None while the agent is off."""

    def __init__(self) -> None:
        self.lines: Lines | None = None
        self.epoch = 0
        """Changes whenever a compilation starts or ends: a call that saw it change compiled, or waited for one."""
        self.token = 0
        """Not 0 while guard lookups are being counted; another value for each stretch of counting."""
        self.stretch = 0
        """Changes with either of them: what is the same at the end of a call needs no closer look."""
        self.commanded = False
        """Whether a command is in force or due: each call must ask whether it is concerned."""
        self.look_at = 0.0
        """When, by `time.perf_counter`, a caller looks next at how long its line has grown."""
        self.current = threading.local()
        self.ready_at: float | None = None
        self.suspended_blocks = False
        """Whether a block was entered inside a coroutine or generator: which lookups are its own is not known."""
        self.internal_errors, self._too_deep, self.last_error = 0, 0, ""
        self.wake: Callable[[], None] = lambda: None
        """Called when a line was made: the client starts the thread of a forked child by it."""
        self._probe_for: Callable[[Line], Probe] | None = None
        self.config: Config | None = None
        """The settings in force."""
        self.off_for_good = False
        """Set when the settings switch the agent off: what is watched from then on is not even wrapped."""
        self.specs = Specs()
        self._steps = itertools.count(1)
        self._draining = threading.Lock()
        self._latched, self._warm_ups, self.compile_requests = (
            LatchedRegions(),
            WarmUps(),
            Requests(),
        )
        self._all_lines: list[Line] = []
        self._reset()

    def _reset(self) -> None:
        for line in self._all_lines:
            line.sampling.reset()
        self.sampler = Sampler()
        self._all_lines = self._latched.lines = []
        self._log = EventLog(
            Fact(fact.kind, time.time(), fact.data) for fact in self._latched.frames.values()
        )
        self._gauges, self.compiling = Gauges(), Compiling()
        self._told: set[int] = set()
        self._at_close: dict[str, Callable[[], None]] = {}

    def start(self) -> None:
        """Begins to record into an empty window."""
        self._latched, self._warm_ups, self.compile_requests = (
            LatchedRegions(),
            WarmUps(),
            Requests(),
        )
        self._reset()
        self.suspended_blocks = False
        self.internal_errors, self._too_deep, self.ready_at, self.lines = 0, 0, None, {}

    def stop(self) -> None:
        """Stops recording; wrappers call straight through from now on."""
        self.lines, self.token, self._probe_for = None, 0, None
        self.sampler.stop()

    def after_fork(self) -> None:
        """In a forked child: new buffers, new lock. What the parent recorded stays the parent's; what is latched is told here too."""
        self._draining = threading.Lock()
        # Wrappers hold the thread-local itself: it is emptied, not replaced, or a child's guard lookups would meet no call of theirs.
        self.current.__dict__.clear()
        self._warm_ups.after_fork()
        self._reset()
        self.internal_errors = self._too_deep = 0
        if self.lines is not None:
            self.lines = {}

    def drain(self) -> int:
        """Bins what the lines hold and answers how many calls that were. For the agent's thread: it lets others run in between."""
        count = 0
        self.sampler.met.tell()
        for line in list(self._all_lines):
            for step in line.steps():
                if step:
                    time.sleep(PAUSE_SECONDS)
                with self._draining:
                    count += line.drain()
        return count

    def pace(self) -> None:
        """Decides which regions are so short that only some of their calls are timed. For the agent's thread, after `drain`."""
        with self._draining:
            self.sampler.pace(self._all_lines, bool(self.compiling.frames()) or self.commanded)

    def look(self, line: Line, now: float) -> None:
        """Every few milliseconds one caller comes here: where its line grew too long, it bins some of what is too much; never waits."""
        self.look_at = now + LOOK_SECONDS
        if line.waiting() > LONG and self._draining.acquire(blocking=False):
            try:
                line.shorten()
                self.sampler.pace(
                    self._all_lines, bool(self.compiling.frames()) or self.commanded
                )  # the agent's thread may wait long
            finally:
                self._draining.release()

    def close(self, seq: int, start: float, end: float) -> Report:
        """The window that ends now as a report; a new one is open from here on. Losses are the sender's to fill in."""
        self._report_totals()
        with self._draining:
            self.sampler.met.tell()
            lines = [line.emptied() for line in list(self._all_lines)]
            self.sampler.settle(lines)
            closed = [line.close() for line in lines]
        self.compile_requests.report(self, zip(lines, closed, strict=True))
        report = self._log.close(
            Report((seq, seq), (start, end), regions_merge([region for region in closed if region]))
        )
        report.gauges = self._gauges
        self.compiling.fill(report.gauges)
        report.gauges.degraded_frames = len(self._latched.frames)
        self._gauges = Gauges()
        return report

    def report_at_close(self, name: str, report: Callable[[], None]) -> None:
        """Has `report` called once, when the window ends: totals that change more often than they are sent lose nothing at an end."""
        self._at_close[name] = report

    def _report_totals(self) -> None:
        for name in list(self._at_close):
            report = self._at_close.pop(name, None)
            if report is not None:
                try:
                    report()
                except Exception as error:  # noqa: BLE001 - the window closes without it
                    self.internal_error(error)

    @property
    def truncated_events(self) -> int:
        """Events whose samples were cut since the start."""
        return self._log.truncated

    def settled(self) -> bool:
        """Whether a watched call was seen to run without compiling after one that compiled."""
        return any(line.settled for line in list(self._all_lines))

    def entered(self, spec: Spec) -> bool:
        """Whether a call of what is watched under the spec has begun."""
        return any(line.spec is spec for line in list(self._all_lines))

    def time_with(self, probe_for: Callable[[Line], Probe] | None) -> None:
        """Has the calls of all lines, present and future, timed on the GPU, or no longer."""
        self._probe_for = probe_for
        for line in list(self._all_lines):
            line.probe = None if probe_for is None else probe_for(line)

    def register(self, spec: Spec) -> int:
        """The base of the spec's line keys: the same for the same spec, and that of `other` when there are too many."""
        return self.specs.number(spec) << 8

    def ready(self) -> None:
        """The job says that warm-up is over."""
        self.ready_at = time.time()
        self._warm_ups.end()
        self.fact("ready")

    def call(self) -> Call:
        """The calling thread's record; `hits` and `misses` are for the guard hook to raise."""
        try:
            return self.current.call  # type: ignore[no-any-return]
        except AttributeError:
            return first_call(self.current)

    def innermost(self) -> Line | None:
        """The line of the watched call that this thread is in; takes a while."""
        line = self.call().line
        return (
            cast("Line | None", untimed_calls.innermost(line, sys._getframe(1)))
            if self.sampler.ever
            else line
        )

    def disturbed(
        self, line: Line, stretch: int, start: float, lookups: tuple[int, int] | None
    ) -> Durations:
        """Where a call goes whose stretch ended under way: it compiled or waited for it, or others did, or counting was switched."""
        known = 0 < self.token <= stretch
        if self.epoch > stretch:
            served = known and lookups is not None and lookups[0] > 0 and not lookups[1]
            if self.call().compiled_at > stretch or self.compiling.held_up(stretch, served):
                self.compiling.waited()
                return line.waited(start)
        return line.looked_up(lookups) if known else line.plain

    def line(self, key: Any) -> Line:
        """The line of a key that `lines` does not have yet, or the one that nobody reads if the agent fails here."""
        try:
            line, lines = self._line_for(key), self.lines
            if lines is not None and len(lines) < MAX_KEYS:
                lines[key] = line
            return line
        except Exception as error:  # noqa: BLE001 - this runs inside a call of the job
            self.internal_error(error)
            return NOWHERE

    def _line_for(self, key: Any) -> Line:
        number, nested, bucket = self.specs.told_by(key)
        spec = self.specs.all[number]
        name = spec.name
        if len(self._all_lines) >= MAX_LINES:
            name = bucket = OTHER
        region = Region(
            name,
            0,
            spec.admit(bucket) if bucket else "",
            spec.mode,
            spec.runtime,
            not nested,
            stalled=Sketch(),
        )
        line = self._line_with(region, spec)
        outer = self.innermost()
        if outer is not None:
            outer.holds_another()
            self._latched.note(line.region.name, outer.region.name)
        if spec.options and number not in self._told:
            self._told.add(number)
            self.fact("mark", {"name": "torch.compile", "region": spec.name, **spec.options})
        self.wake()
        return line

    def _line_with(self, region: Region, spec: Spec) -> Line:
        """The line of this region's key, shared by all keys that end in the same bucket."""
        for line in self._all_lines:
            if (line.spec is spec or region.name == OTHER) and region_key(
                line.region
            ) == region_key(region):
                return line
        line = Line(spec, region, self._warm_ups.of(region.name, spec.runtime == EAGER))
        if self._probe_for is not None:
            line.probe = self._probe_for(line)
        self._latched.point(line)
        self._all_lines.append(line)
        return line

    def compile_started(self, frame: str) -> None:
        """A compilation began in this thread; `compile_stopped` must follow."""
        self.compiling.begin(frame, self.warms_up())

    def compile_stopped(self) -> None:
        """The compilation that began last in this thread is over, whatever came of it."""
        self.compiling.end(self.warms_up())
        self.sampler.met.end(bool(self.compiling.frames()))

    def compile_finished(self, compile: Compile) -> None:
        """The record of a compilation that is over; works without a start. Sets `in_request` when a caller waited for it."""
        self.compiling.over(self.warms_up(compile.seconds.get("total", 0.0)))
        self.sampler.met.end(bool(self.compiling.frames()))
        line = self.innermost()
        compile.in_request = compile.in_request or self.in_request()
        self.compiling.note(compile)
        self.compile_requests.note_compilation(
            self._latched.with_outer(line.region.name if line else None), compile
        )
        self._latched.compiled_in(line.region.name if line else None)
        self._log.compile(compile)
        self.wake()  # a forked child that only compiles is an instance too

    def warms_up(self, seconds: float = 0.0) -> int:
        """The calls under way are not as fast as those that follow; that of this thread for `seconds`. Answers the step."""
        self.sampler.disturb(seconds)
        step = self.epoch = self.stretch = self.call().compiled_at = next(self._steps)
        return step

    def in_request(self) -> bool:
        """Whether somebody waits for what this thread compiles: a watched call that is warm, or without any everything after `ready()`."""
        line = self.innermost()
        if line is None:
            return self.ready_at is not None and not self._all_lines
        return line.served or line.warm_up.over

    def finding(
        self,
        kind: str,
        text: str,
        where: str = "",
        count: int = 1,
        seconds: float = 0.0,
        **values: Any,
    ) -> None:
        """A graph break, a failed guard, a fallback and so on; like ones are added up, and so are the seconds they cost. `values`: what
        a guard met, as `Finding` names it."""
        self._log.finding(Finding(kind, text, where, count, seconds, **values))

    def fact(self, kind: str, data: dict[str, Any] | None = None) -> None:
        """Something certain, at this moment."""
        self._log.fact(Fact(kind, self.moment(), data or {}))

    def fact_counted(self, kind: str, data: dict[str, Any]) -> None:
        """The same where it may happen again and again: one fact a window, whose `count` says how often in it."""
        self._log.fact_counted(Fact(kind, self.moment(), data))

    def moment(self) -> float:
        """When what is told now happened, in Unix seconds."""
        return time.time()

    def gauge(self, name: str, value: Any) -> None:
        """The latest value of a field of `Gauges`, `devices` included."""
        setattr(self._gauges, name, value)

    def count_lookups(self, on: bool) -> None:
        """Says whether guard lookups are being counted from now on; calls that began before the change stay unsampled."""
        self.stretch = step = next(self._steps)
        self.token = step if on else 0

    def latch(self, frame: str, cause: str, **data: Any) -> None:
        """The frame runs eager from now on: calls of the regions open in this thread that hit no guard count as `cause`."""
        line = self.innermost()
        fact = Fact("latched_eager", self.moment(), {"frame": frame, "cause": cause, **data})
        if self._latched.latch(fact, line.region.name if line else None):
            self._log.fact(fact)

    def met_no_graph(self, line: Line | None) -> None:
        """Code without a graph ran in a call of the line: calls of its region that met no other code are eager because of it."""
        self._latched.without_graph(line.region.name if line else None)

    def unlatch(self) -> None:
        """Takes back what `latch` said: torch was reset."""
        self._latched.unlatch()

    def eager_everywhere(self, cause: str, overrides: bool = False) -> None:
        """The whole process runs eager because of `cause` until it is empty; `overrides`: whatever is known of single frames."""
        self._latched.everywhere(cause, overrides)

    def internal_error(self, error: BaseException) -> None:
        """Counts what the agent failed at; after 20 faults of its own it switches itself off. Never raises."""
        with suppress(
            Exception
        ):  # an exception may fail to say what it is, and memory may be used up
            self._too_deep += isinstance(
                error, RecursionError
            )  # the job's own recursion left us no frame: no fault of ours
            self.internal_errors, self.last_error = self.internal_errors + 1, type(error).__name__
            self.last_error = f"{self.last_error}: {error}"[:200]
        if self.internal_errors - self._too_deep >= MAX_INTERNAL_ERRORS and self.lines is not None:
            with suppress(Exception):
                self.stop()
                self.fact("mark", {"name": "agent switched itself off", "reason": self.last_error})


RECORDER = Recorder()
"""The process's own; wrappers made before `init` already write to it."""
