"""Recorder: the open window. Wrappers and sources write to it from any thread, without a lock and
without I/O.

Algorithm: write to append-only buffers, aggregate later. Wrappers append to a `SeriesBuffer`;
sources append to the `EventLog`. The agent's thread collects the buffers about once a second
(`collect`) and rotates the window at its end (`rotate`). Overlap detection uses a step counter in
the manner of a sequence lock: each start or end of a compilation takes the next number of `_steps`
into `compile_step` and `latest_step`. A call reads `latest_step` before and after. Equal values
mean a steady call; otherwise `choose_list` decides between warm-up, stalled and steady.

Invariants. `_collect_lock` serialises collection, rate adaptation and rotation; no wrapper waits
for it (`shorten_if_long` tries once). Publication relies on the GIL: a reference or an integer is
written in one step of the interpreter. `itertools.count` gives each thread its own number without a
lock. `buffers is None` means that the agent is off: a wrapper then calls the original. A forked
child gets new buffers and a new lock, because the parent's lock may be held at the fork.

Cost: a call without a change of `latest_step` never enters this module; see
`instrument/hotpath.py`. Source: own design, after the collect and export split of OpenTelemetry
metrics."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import Any

from compilewatch.config import Config
from compilewatch.recording.active_compiles import ActiveCompiles
from compilewatch.recording.aggregate import EventLog, merge_regions
from compilewatch.recording.call_recorder import CallRecorder
from compilewatch.recording.compile_requests import CompileRequests
from compilewatch.recording.eager_tracker import EagerTracker
from compilewatch.recording.sampler import Sampler
from compilewatch.recording.series_buffer import (
    CHECK_SECONDS,
    CHUNK_PAUSE_SECONDS,
    LONG_CALLS,
    SeriesBuffer,
)
from compilewatch.recording.warm_up import WarmUps
from compilewatch.wire.messages import Compile, Fact, Gauges, Report


class Recorder(CallRecorder):
    """The recorder of the process, created at import. `buffers` is None while the agent is off."""

    def __init__(self) -> None:
        super().__init__()
        self.has_command = False
        """True while a command is in force or due. Each call must then check whether the command
        applies."""
        self.next_check_at = 0.0
        """When, by `time.perf_counter`, a caller next checks the length of its buffer."""
        self.ready_at: float | None = None
        self.has_suspended_blocks = False
        """True after a block was entered inside a coroutine or generator. Its own guard lookups
        are then unknown."""
        self.config: Config | None = None
        """The settings in force."""
        self.is_disabled = False
        """True if the settings disable the agent. Callables are then not wrapped."""
        self.compile_requests = CompileRequests()
        self._collect_lock = threading.Lock()
        self._reset()

    def _reset(self) -> None:
        for buffer in self._all_buffers:
            buffer.sampling.reset()
        self.sampler = Sampler()
        self._all_buffers = self._eager_tracker.buffers = []
        self._log = EventLog(
            Fact(fact.kind, time.time(), fact.data) for fact in self._eager_tracker.frames.values()
        )
        self._gauges, self.active_compiles = Gauges(), ActiveCompiles()
        self._reported_specs: set[int] = set()
        self._totals: dict[str, Callable[[], None]] = {}

    def start(self) -> None:
        """Starts to record into an empty window."""
        self._eager_tracker, self._warm_ups = EagerTracker(), WarmUps()
        self.compile_requests = CompileRequests()
        self._reset()
        self.has_suspended_blocks = False
        self.internal_error_count, self._recursion_errors, self.ready_at, self.buffers = (
            0,
            0,
            None,
            {},
        )

    def reset_after_fork(self) -> None:
        """Resets a forked child: new buffers, new lock. The parent reports its own calls; the
        child repeats the eager fallbacks."""
        self._collect_lock = threading.Lock()
        # Wrappers hold the thread-local itself. It is emptied, not replaced: otherwise guard
        # lookups in the child would find no call.
        self.thread_local.__dict__.clear()
        self._warm_ups.reset_after_fork()
        self._reset()
        self.internal_error_count = self._recursion_errors = 0
        if self.buffers is not None:
            self.buffers = {}

    def collect(self) -> int:
        """Bins the waiting calls of all buffers and returns their number. Runs on the agent's
        thread and yields between chunks."""
        count = 0
        self.sampler.overlaps.count_ended()
        for buffer in list(self._all_buffers):
            for step in buffer.chunk_range():
                if step:
                    time.sleep(CHUNK_PAUSE_SECONDS)
                with self._collect_lock:
                    count += buffer.collect()
        return count

    def adapt_rate(self) -> None:
        """Decides which regions are short enough to be sampled. Runs on the agent's thread,
        after `collect`."""
        with self._collect_lock:
            self.sampler.adapt_rate(
                self._all_buffers, bool(self.active_compiles.frames()) or self.has_command
            )

    def shorten_if_long(self, buffer: SeriesBuffer, now: float) -> None:
        """Lets one caller every few milliseconds bin part of a buffer that is too long. Never
        waits."""
        self.next_check_at = now + CHECK_SECONDS
        if buffer.pending_calls() > LONG_CALLS and self._collect_lock.acquire(blocking=False):
            try:
                buffer.shorten()
                # The agent's thread may be late.
                self.sampler.adapt_rate(
                    self._all_buffers, bool(self.active_compiles.frames()) or self.has_command
                )
            finally:
                self._collect_lock.release()

    def rotate(self, seq: int, start: float, end: float) -> Report:
        """Rotates the window: returns it as a report and opens the next one. The sender adds the
        losses."""
        self._report_totals()
        with self._collect_lock:
            self.sampler.overlaps.count_ended()
            buffers = [buffer.collect_all() for buffer in list(self._all_buffers)]
            self.sampler.flush_counts(buffers)
            regions = [buffer.rotate() for buffer in buffers]
        self.compile_requests.report_uncompiled(self, zip(buffers, regions, strict=True))
        report = self._log.rotate(
            Report(
                (seq, seq), (start, end), merge_regions([region for region in regions if region])
            )
        )
        report.gauges = self._gauges
        self.active_compiles.fill_gauges(report.gauges)
        report.gauges.degraded_frames = len(self._eager_tracker.frames)
        self._gauges = Gauges()
        return report

    def report_at_rotation(self, name: str, report: Callable[[], None]) -> None:
        """Registers `report` to run once when the window ends. Totals that change often are then
        complete."""
        self._totals[name] = report

    def _report_totals(self) -> None:
        for name in list(self._totals):
            report = self._totals.pop(name, None)
            if report is not None:
                try:
                    report()
                except Exception as error:  # noqa: BLE001 - the window closes without this report
                    self.record_internal_error(error)

    def mark_ready(self) -> None:
        """Records that the job declares its warm-up finished."""
        self.ready_at = time.time()
        self._warm_ups.end_all()
        self.record_fact("ready")

    def on_compile_start(self, frame: str) -> None:
        """Records that a compilation starts on this thread. `on_compile_stop` must follow."""
        self.active_compiles.begin(frame, self.advance_step())

    def on_compile_stop(self) -> None:
        """Records that the newest compilation of this thread has ended, with any result."""
        self.active_compiles.end(self.advance_step())
        self.sampler.overlaps.record_end(bool(self.active_compiles.frames()))

    def record_compile(self, compile: Compile) -> None:
        """Records a finished compilation, with or without a recorded start. Sets `in_request` if
        a caller waited for it."""
        self.active_compiles.record_end(self.advance_step(compile.seconds.get("total", 0.0)))
        self.sampler.overlaps.record_end(bool(self.active_compiles.frames()))
        buffer = self.find_innermost()
        compile.in_request = compile.in_request or self.is_in_request()
        self.active_compiles.record_duration(compile)
        self.compile_requests.record_compile(
            self._eager_tracker.enclosing_regions(buffer.region.name if buffer else None), compile
        )
        self._eager_tracker.record_compile(buffer.region.name if buffer else None)
        self._log.add_compile(compile)
        self.wake()  # a forked child that only compiles is an instance too

    def is_in_request(self) -> bool:
        """True if a caller waits for the compilation on this thread.

        A warm watched call waits for it. Without watched calls, everything after `ready()`
        waits."""
        buffer = self.find_innermost()
        if buffer is None:
            return self.ready_at is not None and not self._all_buffers
        return buffer.has_served or buffer.warm_up.is_over

    def record_eager_fallback(self, frame: str, cause: str, **data: Any) -> None:
        """Records an eager fallback of the frame.

        Calls without a guard hit, in regions that are open on this thread, count as `cause` from
        now on."""
        buffer = self.find_innermost()
        fact = Fact("latched_eager", self.event_time(), {"frame": frame, "cause": cause, **data})
        if self._eager_tracker.record_fallback(fact, buffer.region.name if buffer else None):
            self._log.add_fact(fact)

    def record_no_graph(self, buffer: SeriesBuffer | None) -> None:
        """Records that code without a graph ran in a call of the buffer. Calls of its region
        without other code are eager because of it."""
        self._eager_tracker.record_no_graph(buffer.region.name if buffer else None)

    def clear_eager_fallbacks(self) -> None:
        """Clears the eager fallbacks after a reset of torch."""
        self._eager_tracker.clear_fallbacks()

    def set_process_eager(self, cause: str, overrides: bool = False) -> None:
        """Marks the process as eager because of `cause`, until it is empty. `overrides`: takes
        precedence over single frames."""
        self._eager_tracker.set_process_cause(cause, overrides)


RECORDER = Recorder()
"""The recorder of the process. Wrappers that were created before `init` already write to it."""
