"""Series buffer: append-only lists of call durations for one region, shape bucket and nesting. The
hot path writes here.

Algorithm: single-consumer queue without a lock. Callers append to the end of a list. One thread at
a time collects (`Recorder._collect_lock`): it copies the newest values with a slice and deletes the
slice. Append, slice and slice deletion are single steps of the interpreter, so under the GIL each
call is counted once. Only the collector removes values, and it removes the positions that it
copied: appends during the two steps go behind them.

The list that a caller appends to encodes the result of the call. `route_calls` sets the attributes
`plain`, `compiled`, `partial`, `unknown` and `unmatched`, so a caller needs no branch for the
warm-up or an eager fallback. During the warm-up, `WarmUpEnd` objects take the place of lists.

Bounds. `CHUNK_CALLS` calls are binned at a time, about 0.2 ms, so that other threads run in
between. Beyond `LONG_CALLS` calls, callers bin the excess themselves. Beyond `MAX_CALLS` calls, the
durations of the oldest calls are dropped; the calls are still counted.

Cost: one append for a call; about 0.2 us per call on the agent's thread. Source: own design; the
sketch is `wire/sketch.py`."""

from __future__ import annotations

from typing import Any

from compilewatch.recording.buffer_types import Probe
from compilewatch.recording.call_sampling import Sampling
from compilewatch.recording.region_spec import OTHER, RegionSpec
from compilewatch.recording.runtime_names import AHEAD_OF_TIME, TORCH_COMPILE
from compilewatch.recording.warm_up import NO_WARM_UP, DurationSink, WarmUp, WarmUpEnd
from compilewatch.wire.messages import EAGER_CAUSES, Region
from compilewatch.wire.sketch import Sketch

CHECK_SECONDS, CHUNK_PAUSE_SECONDS = 0.02, 0.0002
LONG_CALLS = 1 << 15
"""Calls that a buffer may hold before callers bin the excess."""
MAX_CALLS = 1 << 17
"""Maximum number of durations in one list, about 4 MiB. Callers can append faster than any
thread can bin."""
CHUNK_CALLS = 1024
"""Calls binned at a time, about 0.2 ms without another thread of the process."""
MAX_CALLER_CHUNKS = 32
"""Chunks that one caller bins at a time.

Without a limit, a caller would bin the calls of all other threads, for seconds."""
CALL_KINDS = ("plain", "compiled", "partial", "unknown")
"""Result of the guard lookups of a call. `plain`: lookups were not counted."""


class SeriesBuffer:
    """Seconds of calls, one list per result. Callers append; `collect` alone removes."""

    __slots__ = (
        "compiled",
        "eager_cause",
        "eager_lists",
        "errors",
        "gpu",
        "has_nested_calls",
        "has_served",
        "has_settled",
        "has_warmed_up",
        "items",
        "lists",
        "partial",
        "plain",
        "probe",
        "region",
        "sampling",
        "spec",
        "stalled",
        "timed_count",
        "timed_seconds",
        "unknown",
        "unmatched",
        "warm_up",
        "warmup",
    )

    plain: DurationSink
    compiled: DurationSink
    partial: DurationSink
    unknown: DurationSink
    unmatched: DurationSink

    def __init__(self, spec: RegionSpec, region: Region, warm_up: WarmUp = NO_WARM_UP) -> None:
        self.spec = spec
        self.region = region
        self.lists: dict[str, list[float]] = {kind: [] for kind in CALL_KINDS}
        """Seconds by kind. `collect` removes them; callers append where `route_calls` points."""
        self.warmup: list[float] = []
        self.stalled: list[float] = []
        self.errors: list[int] = []
        self.gpu: list[float] = []
        self.items: list[float] = []
        self.eager_lists: dict[str, list[float]] = {cause: [] for cause in EAGER_CAUSES}
        self.eager_cause = ""
        """Why a call without a guard hit runs eager, if known."""
        self.probe: Probe | None = None
        # Excess regions share the buffer `other`. Its calls belong to no single region and are all
        # timed.
        self.sampling = Sampling() if region.name == OTHER else spec.samplings[not region.outermost]
        self.timed_count, self.timed_seconds = 0, 0.0
        self.has_nested_calls = False
        """True if a call contained another watched call."""
        self.has_served = False
        self.has_warmed_up = False
        self.has_settled = False
        """True if a call ran without compiling after a call that compiled."""
        self.warm_up = warm_up
        warm_up.add(self)

    def route_calls(self) -> None:
        """Points callers at the lists.

        During the warm-up, calls that would end the warm-up go through an `WarmUpEnd`. Calls of
        compiled code end it. After a call that compiled, these calls end it too: calls with
        unknown lookups, and calls for which no compiled code is expected."""
        lists, warm_up = self.lists, self.warm_up
        plain, compiled, partial, unknown = (lists[kind] for kind in CALL_KINDS)
        unmatched = (
            compiled
            if self.spec.runtime in AHEAD_OF_TIME
            else self.eager_lists[self.eager_cause]
            if self.eager_cause
            else unknown
        )
        ends = not warm_up.is_over
        settles = ends and warm_up.has_waited
        expects_code = self.spec.runtime == TORCH_COMPILE and not self.spec.eager_cause
        self.compiled = WarmUpEnd(warm_up, compiled) if ends else compiled
        self.partial = WarmUpEnd(warm_up, partial) if ends else partial
        self.plain = WarmUpEnd(warm_up, plain) if settles else plain
        self.unknown = WarmUpEnd(warm_up, unknown) if settles and not expects_code else unknown
        self.unmatched = (
            WarmUpEnd(warm_up, unmatched)
            if settles and (self.eager_cause or not expects_code)
            else unmatched
        )

    def set_eager_cause(self, cause: str) -> None:
        """Sets the cause for calls without a guard hit. With an empty cause, they count as
        unknown."""
        self.eager_cause = cause
        self.route_calls()

    def choose_list(self, lookups: tuple[int, int] | None) -> DurationSink:
        """The list for a call with these guard hits and misses. None: the lookups of the call
        are unknown."""
        if lookups is None:
            return self.unknown
        hits, misses = lookups
        return self.unmatched if not hits else self.partial if misses else self.compiled

    def choose_waiting_list(self, start: float) -> list[float]:
        """The list for a call that began at `start` and compiled or waited for a compilation."""
        if start >= self.warm_up.ended_at:
            return self.stalled
        self.warm_up.record_wait()
        return self.warmup

    def record_nested_call(self) -> None:
        """Records that a call contains another watched call. From now on, each call must record
        that it is in progress."""
        if not self.has_nested_calls:
            self.has_nested_calls = True
            self.sampling.stop()

    def pending_calls(self) -> int:
        """Number of calls that wait for binning."""
        timed = (*self.lists.values(), *self.eager_lists.values(), self.warmup, self.stalled)
        return sum(map(len, timed)) + len(self.errors)

    def shorten(self) -> None:
        """Bins part of the excess. Runs in a caller, so the work is bounded."""
        for _ in range(MAX_CALLER_CHUNKS):
            if self.pending_calls() > LONG_CALLS:
                self.collect()

    def _drop_durations(self) -> None:
        """Drops the durations of the oldest calls beyond `MAX_CALLS`. These calls count as
        untimed."""
        plain = self.lists["plain"]
        excess = len(plain) - MAX_CALLS
        if excess > 0:
            del plain[: excess + LONG_CALLS]
            self.sampling.corrections.append(-(excess + LONG_CALLS))

    def chunk_range(self) -> range:
        """Steps of `collect` that the waiting calls need."""
        return range(1 + self.pending_calls() // CHUNK_CALLS)

    def collect(self) -> int:
        """Bins the newest `CHUNK_CALLS` calls of each kind into the open region and returns their
        number.

        One thread at a time."""
        region, previous_calls = self.region, self.region.calls
        self._drop_durations()
        self._assign_certain()
        plain = take_snapshot(self.lists["plain"], CHUNK_CALLS)
        answers = self._take_answers(region)
        steady = plain + answers if answers else plain
        warmup, stalled = (
            take_snapshot(self.warmup, CHUNK_CALLS),
            take_snapshot(self.stalled, CHUNK_CALLS),
        )
        errors = len(take_snapshot(self.errors, CHUNK_CALLS))
        region.sampled += len(steady) - len(plain)
        # The counts and the sketches change in the same step: a report never has more stalled calls
        # than calls.
        region.calls += len(steady) + len(warmup) + len(stalled) + errors
        region.errors += errors
        region.latency = _add_to_sketch(region.latency, steady)
        self.timed_count += len(steady)
        self.timed_seconds += sum(steady)
        region.warmup = _add_to_sketch(region.warmup, warmup)
        region.stalled = _add_to_sketch(region.stalled, stalled)
        region.gpu = _add_to_sketch(region.gpu, take_snapshot(self.gpu, CHUNK_CALLS))
        self._update_progress(region, bool(steady), bool(warmup))
        if self.items:
            region.items = (region.items or 0.0) + sum(take_snapshot(self.items, CHUNK_CALLS))
        return region.calls - previous_calls

    def _assign_certain(self) -> None:
        """Moves calls whose result is certain from the spec: eager, or compiled ahead of time."""
        if self.spec.eager_cause:
            for durations in self.lists.values():
                self.eager_lists[self.spec.eager_cause] += take_snapshot(durations, CHUNK_CALLS)
        elif self.spec.runtime in AHEAD_OF_TIME:
            self.lists["compiled"] += take_snapshot(self.lists["plain"], CHUNK_CALLS)

    def _take_answers(self, region: Region) -> list[float]:
        """Takes the calls with a known result, counts them in the region and returns their
        seconds."""
        durations: list[float] = []
        for kind in CALL_KINDS[1:]:
            calls = self.lists[kind]
            if calls:
                chunk = take_snapshot(calls, CHUNK_CALLS)
                setattr(region, kind, getattr(region, kind) + len(chunk))
                durations += chunk
        for cause, calls in self.eager_lists.items():
            if calls:
                chunk = take_snapshot(calls, CHUNK_CALLS)
                region.eager_by[cause] = region.eager_by.get(cause, 0) + len(chunk)
                durations += chunk
        return durations

    def _update_progress(self, region: Region, has_steady: bool, has_warmup: bool) -> None:
        self.has_served = self.has_served or has_steady
        self.has_settled = (
            self.has_settled
            or bool(region.compiled or region.partial)
            or (self.has_warmed_up and has_steady)
        )
        self.has_warmed_up = self.has_warmed_up or has_warmup

    def collect_all(self) -> SeriesBuffer:
        """Bins all waiting calls and returns the buffer itself."""
        for _ in self.chunk_range():
            self.collect()
        return self

    def pop_timed_totals(self) -> tuple[int, float]:
        """Returns and resets the number of timed steady calls and the sum of their seconds."""
        totals = self.timed_count, self.timed_seconds
        self.timed_count, self.timed_seconds = 0, 0.0
        return totals

    def count_untimed(self, calls: int) -> None:
        """Counts calls that were not timed and did not compile."""
        region, cause = self.region, self.spec.eager_cause
        region.calls += calls
        if self.spec.runtime in AHEAD_OF_TIME:
            region.sampled += calls
            region.compiled += calls
        if cause and calls:
            region.sampled += calls
            region.eager_by[cause] = region.eager_by.get(cause, 0) + calls

    def rotate(self) -> Region | None:
        """Ends the window: returns its region, or None without calls, and opens a new region."""
        window = self.region
        if not window.calls and window.gpu is None:
            return None
        self.region = new_region(window)
        window.runtime = self.spec.resolve_runtime(window)
        if window.runtime != TORCH_COMPILE:
            # Without torch.compile, the question whether a call ran compiled does not apply.
            window.sampled, window.unknown = window.sampled - window.unknown, 0
        return window


def new_region(region: Region) -> Region:
    """A region with the same key and no calls."""
    return Region(
        region.name,
        0,
        region.bucket,
        region.mode,
        region.runtime,
        region.outermost,
        stalled=Sketch(),
    )


def take_snapshot(values: list[Any], most: int | None = None) -> list[Any]:
    """Removes and returns the values of the list, or the newest `most` of them. Later appends
    stay."""
    # From the end: removal from the front would move all other values, and a long list would never
    # become short again.
    end = len(values)
    begin = 0 if most is None else max(0, end - most)
    values_taken = values[begin:end]
    del values[begin:end]
    return values_taken


def _add_to_sketch(sketch: Sketch | None, seconds: list[float]) -> Sketch | None:
    if not seconds:
        return sketch
    sketch = sketch or Sketch()
    # A clock that goes backwards or fails yields no duration: the call counts, but is in no sketch.
    sketch.add_many(
        seconds if min(seconds) >= 0.0 else [duration for duration in seconds if duration >= 0.0]
    )
    return sketch


DISCARD_BUFFER = SeriesBuffer(RegionSpec(""), Region("", 0))
"""Receives calls that the agent fails to assign. Never read."""
