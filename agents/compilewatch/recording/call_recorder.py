"""Call recorder: buffers of the watched calls, thread states and the steps of compilations.

`recorder.py` describes the algorithm and its invariants."""

from __future__ import annotations

import itertools
import sys
import threading
from collections.abc import Callable
from contextlib import suppress
from typing import Any, cast

from compilewatch.recording import untimed_calls
from compilewatch.recording.active_compiles import Compiling
from compilewatch.recording.aggregate import region_key
from compilewatch.recording.buffer_types import Probe
from compilewatch.recording.eager_tracker import LatchedRegions
from compilewatch.recording.event_recorder import EventRecorder
from compilewatch.recording.region_spec import OTHER, Spec, Specs
from compilewatch.recording.runtime_names import EAGER
from compilewatch.recording.sampler import Sampler
from compilewatch.recording.series_buffer import NOWHERE, Line
from compilewatch.recording.thread_state import Call, first_call
from compilewatch.recording.warm_up import Durations, WarmUps
from compilewatch.wire.messages import Region
from compilewatch.wire.sketch import Sketch

MAX_LINES, MAX_KEYS = 256, 10_000
MAX_INTERNAL_ERRORS = 20
Lines = dict[Any, Line]


class CallRecorder(EventRecorder):
    """Assigns calls to buffers. `buffers` is None while the agent is off."""

    sampler: Sampler
    compiling: Compiling
    _reported_specs: set[int]

    def __init__(self) -> None:
        self.lines: Lines | None = None
        self.epoch = 0
        """Step of the last start or end of a compilation. A call that sees a change compiled, or
        waited for a compilation."""
        self.token = 0
        """Step at which the counting of guard lookups started; 0 while it is off."""
        self.stretch = 0
        """Step of the last change of either. A call that sees no change needs no further check."""
        self.current = threading.local()
        self.internal_errors, self._recursion_errors, self.last_error = 0, 0, ""
        self.wake: Callable[[], None] = lambda: None
        """Called when a buffer is created. The agent starts the thread of a forked child here."""
        self._probe_for: Callable[[Line], Probe] | None = None
        self.specs = Specs()
        self._steps = itertools.count(1)
        self._eager_tracker, self._warm_ups = LatchedRegions(), WarmUps()
        self._all_buffers: list[Line] = []

    def stop(self) -> None:
        """Stops recording. Wrappers call the original directly from now on."""
        self.lines, self.token, self._probe_for = None, 0, None
        self.sampler.stop()

    def settled(self) -> bool:
        """True if a watched call ran without compiling after a call that compiled."""
        return any(buffer.settled for buffer in list(self._all_buffers))

    def entered(self, spec: Spec) -> bool:
        """True if a call of the spec's region has begun."""
        return any(buffer.spec is spec for buffer in list(self._all_buffers))

    def time_with(self, probe_for: Callable[[Line], Probe] | None) -> None:
        """Sets the GPU probe of all present and future buffers; None removes it."""
        self._probe_for = probe_for
        for buffer in list(self._all_buffers):
            buffer.probe = None if probe_for is None else probe_for(buffer)

    def register(self, spec: Spec) -> int:
        """Returns the base of the spec's buffer keys. Equal specs share a base; excess specs use
        the base of `other`."""
        return self.specs.number(spec) << 8

    def call(self) -> Call:
        """The state of the calling thread. The guard hook increments `hits` and `misses`."""
        try:
            return self.current.call  # type: ignore[no-any-return]
        except AttributeError:
            return first_call(self.current)

    def innermost(self) -> Line | None:
        """The buffer of the watched call that this thread is in. May walk the stack."""
        buffer = self.call().line
        return (
            cast("Line | None", untimed_calls.innermost(buffer, sys._getframe(1)))
            if self.sampler.ever
            else buffer
        )

    def disturbed(
        self, buffer: Line, stretch: int, start: float, lookups: tuple[int, int] | None
    ) -> Durations:
        """The list for a call that saw a step: it compiled, waited, or neither.

        Neither: another thread compiled, or the counting of lookups was switched."""
        lookups_known = 0 < self.token <= stretch
        if self.epoch > stretch:
            was_served = lookups_known and lookups is not None and lookups[0] > 0 and not lookups[1]
            if self.call().compiled_at > stretch or self.compiling.held_up(stretch, was_served):
                self.compiling.waited()
                return buffer.waited(start)
        return buffer.looked_up(lookups) if lookups_known else buffer.plain

    def line(self, key: Any) -> Line:
        """The buffer of a key that `buffers` does not hold yet. If the agent fails, a buffer that
        is never read."""
        try:
            buffer, buffers = self._create_buffer(key), self.lines
            if buffers is not None and len(buffers) < MAX_KEYS:
                buffers[key] = buffer
            return buffer
        except Exception as error:  # noqa: BLE001 - runs inside a call of the job
            self.internal_error(error)
            return NOWHERE

    def _create_buffer(self, key: Any) -> Line:
        number, nested, bucket = self.specs.told_by(key)
        spec = self.specs.all[number]
        name = spec.name
        if len(self._all_buffers) >= MAX_LINES:
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
        buffer = self._find_or_create(region, spec)
        outer = self.innermost()
        if outer is not None:
            outer.holds_another()
            self._eager_tracker.note(buffer.region.name, outer.region.name)
        if spec.options and number not in self._reported_specs:
            self._reported_specs.add(number)
            self.fact("mark", {"name": "torch.compile", "region": spec.name, **spec.options})
        self.wake()
        return buffer

    def _find_or_create(self, region: Region, spec: Spec) -> Line:
        """The buffer of the region's key. Keys that end in the same bucket share it."""
        for buffer in self._all_buffers:
            if (buffer.spec is spec or region.name == OTHER) and region_key(
                buffer.region
            ) == region_key(region):
                return buffer
        buffer = Line(spec, region, self._warm_ups.of(region.name, spec.runtime == EAGER))
        if self._probe_for is not None:
            buffer.probe = self._probe_for(buffer)
        self._eager_tracker.point(buffer)
        self._all_buffers.append(buffer)
        return buffer

    def warms_up(self, seconds: float = 0.0) -> int:
        """Records that calls in progress are slower than later ones. On this thread, for the last
        `seconds`.

        Returns the step."""
        self.sampler.disturb(seconds)
        step = self.epoch = self.stretch = self.call().compiled_at = next(self._steps)
        return step

    def count_lookups(self, on: bool) -> None:
        """Switches the counting of guard lookups on or off. Calls that began before stay
        unsampled."""
        self.stretch = step = next(self._steps)
        self.token = step if on else 0

    def internal_error(self, error: BaseException) -> None:
        """Counts an error of the agent. After 20 errors of its own, the agent switches itself
        off. Never raises."""
        # An exception may fail to convert to text, and memory may be exhausted.
        with suppress(Exception):
            # The job's own recursion left no frame; that is no error of the agent.
            self._recursion_errors += isinstance(error, RecursionError)
            self.internal_errors, self.last_error = self.internal_errors + 1, type(error).__name__
            self.last_error = f"{self.last_error}: {error}"[:200]
        if (
            self.internal_errors - self._recursion_errors >= MAX_INTERNAL_ERRORS
            and self.lines is not None
        ):
            with suppress(Exception):
                self.stop()
                self.fact("mark", {"name": "agent switched itself off", "reason": self.last_error})
