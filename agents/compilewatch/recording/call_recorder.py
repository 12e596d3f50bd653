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
from compilewatch.recording.active_compiles import ActiveCompiles
from compilewatch.recording.aggregate import region_key
from compilewatch.recording.buffer_types import Probe
from compilewatch.recording.eager_tracker import EagerTracker
from compilewatch.recording.event_recorder import EventRecorder
from compilewatch.recording.region_spec import OTHER, RegionSpec, SpecRegistry
from compilewatch.recording.runtime_names import EAGER
from compilewatch.recording.sampler import Sampler
from compilewatch.recording.series_buffer import DISCARD_BUFFER, SeriesBuffer
from compilewatch.recording.thread_state import ThreadState, create_thread_state
from compilewatch.recording.warm_up import DurationSink, WarmUps
from compilewatch.wire.messages import Region
from compilewatch.wire.sketch import Sketch

MAX_BUFFERS, MAX_KEYS = 256, 10_000
MAX_INTERNAL_ERRORS = 20
BuffersByKey = dict[Any, SeriesBuffer]


class CallRecorder(EventRecorder):
    """Assigns calls to buffers. `buffers` is None while the agent is off."""

    sampler: Sampler
    active_compiles: ActiveCompiles
    _reported_specs: set[int]

    def __init__(self) -> None:
        self.buffers: BuffersByKey | None = None
        self.compile_step = 0
        """Step of the last start or end of a compilation. A call that sees a change compiled, or
        waited for a compilation."""
        self.lookup_step = 0
        """Step at which the counting of guard lookups started; 0 while it is off."""
        self.latest_step = 0
        """Step of the last change of either. A call that sees no change needs no further check."""
        self.thread_local = threading.local()
        self.internal_error_count, self._recursion_errors, self.last_error = 0, 0, ""
        self.wake: Callable[[], None] = lambda: None
        """Called when a buffer is created. The agent starts the thread of a forked child here."""
        self._probe_for: Callable[[SeriesBuffer], Probe] | None = None
        self.specs = SpecRegistry()
        self._steps = itertools.count(1)
        self._eager_tracker, self._warm_ups = EagerTracker(), WarmUps()
        self._all_buffers: list[SeriesBuffer] = []

    def stop(self) -> None:
        """Stops recording. Wrappers call the original directly from now on."""
        self.buffers, self.lookup_step, self._probe_for = None, 0, None
        self.sampler.stop()

    def has_settled(self) -> bool:
        """True if a watched call ran without compiling after a call that compiled."""
        return any(buffer.has_settled for buffer in list(self._all_buffers))

    def has_begun(self, spec: RegionSpec) -> bool:
        """True if a call of the spec's region has begun."""
        return any(buffer.spec is spec for buffer in list(self._all_buffers))

    def set_probe(self, probe_for: Callable[[SeriesBuffer], Probe] | None) -> None:
        """Sets the GPU probe of all present and future buffers; None removes it."""
        self._probe_for = probe_for
        for buffer in list(self._all_buffers):
            buffer.probe = None if probe_for is None else probe_for(buffer)

    def register(self, spec: RegionSpec) -> int:
        """Returns the base of the spec's buffer keys. Equal specs share a base; excess specs use
        the base of `other`."""
        return self.specs.register(spec) << 8

    def get_thread_state(self) -> ThreadState:
        """The state of the calling thread. The guard hook increments `hits` and `misses`."""
        try:
            return self.thread_local.call  # type: ignore[no-any-return]
        except AttributeError:
            return create_thread_state(self.thread_local)

    def find_innermost(self) -> SeriesBuffer | None:
        """The buffer of the watched call that this thread is in. May walk the stack."""
        buffer = self.get_thread_state().buffer
        return (
            cast("SeriesBuffer | None", untimed_calls.find_innermost(buffer, sys._getframe(1)))
            if self.sampler.has_sampled
            else buffer
        )

    def choose_list(
        self, buffer: SeriesBuffer, stretch: int, start: float, lookups: tuple[int, int] | None
    ) -> DurationSink:
        """The list for a call that saw a step: it compiled, waited, or neither.

        Neither: another thread compiled, or the counting of lookups was switched."""
        lookups_known = 0 < self.lookup_step <= stretch
        if self.compile_step > stretch:
            was_served = lookups_known and lookups is not None and lookups[0] > 0 and not lookups[1]
            if self.get_thread_state().compile_step > stretch or self.active_compiles.has_waited(
                stretch, was_served
            ):
                self.active_compiles.record_wait()
                return buffer.choose_waiting_list(start)
        return buffer.choose_list(lookups) if lookups_known else buffer.plain

    def add_buffer(self, key: Any) -> SeriesBuffer:
        """The buffer of a key that `buffers` does not hold yet. If the agent fails, a buffer that
        is never read."""
        try:
            buffer, buffers = self._create_buffer(key), self.buffers
            if buffers is not None and len(buffers) < MAX_KEYS:
                buffers[key] = buffer
            return buffer
        except Exception as error:  # noqa: BLE001 - runs inside a call of the job
            self.record_internal_error(error)
            return DISCARD_BUFFER

    def _create_buffer(self, key: Any) -> SeriesBuffer:
        number, nested, bucket = self.specs.split_key(key)
        spec = self.specs.all[number]
        name = spec.name
        if len(self._all_buffers) >= MAX_BUFFERS:
            name = bucket = OTHER
        region = Region(
            name,
            0,
            spec.admit_bucket(bucket) if bucket else "",
            spec.mode,
            spec.runtime,
            not nested,
            stalled=Sketch(),
        )
        buffer = self._find_or_create(region, spec)
        outer = self.find_innermost()
        if outer is not None:
            outer.record_nested_call()
            self._eager_tracker.record_nesting(buffer.region.name, outer.region.name)
        if spec.options and number not in self._reported_specs:
            self._reported_specs.add(number)
            self.record_fact("mark", {"name": "torch.compile", "region": spec.name, **spec.options})
        self.wake()
        return buffer

    def _find_or_create(self, region: Region, spec: RegionSpec) -> SeriesBuffer:
        """The buffer of the region's key. Keys that end in the same bucket share it."""
        for buffer in self._all_buffers:
            if (buffer.spec is spec or region.name == OTHER) and region_key(
                buffer.region
            ) == region_key(region):
                return buffer
        buffer = SeriesBuffer(
            spec, region, self._warm_ups.find_warm_up(region.name, spec.runtime == EAGER)
        )
        if self._probe_for is not None:
            buffer.probe = self._probe_for(buffer)
        self._eager_tracker.update_buffer(buffer)
        self._all_buffers.append(buffer)
        return buffer

    def advance_step(self, seconds: float = 0.0) -> int:
        """Records that calls in progress are slower than later ones. On this thread, for the last
        `seconds`.

        Returns the step."""
        self.sampler.on_compile_start(seconds)
        step = self.compile_step = self.latest_step = self.get_thread_state().compile_step = next(
            self._steps
        )
        return step

    def count_lookups(self, on: bool) -> None:
        """Switches the counting of guard lookups on or off. Calls that began before stay
        unsampled."""
        self.latest_step = step = next(self._steps)
        self.lookup_step = step if on else 0

    def record_internal_error(self, error: BaseException) -> None:
        """Counts an error of the agent. After 20 errors of its own, the agent switches itself
        off. Never raises."""
        # An exception may fail to convert to text, and memory may be exhausted.
        with suppress(Exception):
            # The job's own recursion left no frame; that is no error of the agent.
            self._recursion_errors += isinstance(error, RecursionError)
            self.internal_error_count, self.last_error = (
                self.internal_error_count + 1,
                type(error).__name__,
            )
            self.last_error = f"{self.last_error}: {error}"[:200]
        if (
            self.internal_error_count - self._recursion_errors >= MAX_INTERNAL_ERRORS
            and self.buffers is not None
        ):
            with suppress(Exception):
                self.stop()
                self.record_fact(
                    "mark", {"name": "agent switched itself off", "reason": self.last_error}
                )
