"""Timed call: blocks, and callables with the job's own buckets and items, which need more than
the hot path."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from contextvars import ContextVar
from typing import Any, TypeVar

from compilewatch.instrument.hotpath import bucket_of, finish_event_pair, record_error
from compilewatch.recording.recorder import RECORDER
from compilewatch.recording.region_spec import NESTED_BIT, OTHER, RegionSpec
from compilewatch.recording.series_buffer import SeriesBuffer
from compilewatch.recording.warm_up import DurationSink

MAX_ITEMS = 1e12
MAX_BUCKET_TEXT = 64
MAX_CALLABLE_FAULTS = 20


class OpenCall:
    """A coroutine or generator in progress, as its tasks find it in their context. `buffer` is
    None after its end."""

    __slots__ = ("buffer",)

    def __init__(self, buffer: SeriesBuffer | None) -> None:
        self.buffer = buffer


NO_OPEN_CALL = OpenCall(None)
OPEN_CALL: ContextVar[OpenCall] = ContextVar("compilewatch_open")


class TimedCall:
    """A timed call in progress."""

    __slots__ = (
        "_event_pair",
        "_hits",
        "_misses",
        "_on_one_thread",
        "_outer",
        "_probe",
        "_start",
        "_state",
        "_step",
        "buffer",
    )

    def __init__(self, base: int, bucket: object = 0, on_one_thread: bool = True) -> None:
        """Starts the call. `on_one_thread`: the call begins and ends on this thread without
        suspension.

        Guard lookups and nested calls in between then belong to the call."""
        recorder = RECORDER
        buffers = recorder.buffers
        call = self._state = recorder.get_thread_state()
        outer = self._outer = call.buffer
        if outer is None and not on_one_thread:
            outer = OPEN_CALL.get(NO_OPEN_CALL).buffer
        nested = 0
        if outer is not None:
            nested = NESTED_BIT
            outer.record_nested_call()
        key: Any = base + nested + bucket if isinstance(bucket, int) else (base, nested, bucket)
        self.buffer: SeriesBuffer = (
            recorder.add_buffer(key) if buffers is None or key not in buffers else buffers[key]
        )
        self._probe = self.buffer.probe if on_one_thread else None
        self._event_pair = None if self._probe is None else self._probe.begin()
        self._hits, self._misses = call.hits, call.misses
        self._on_one_thread = on_one_thread
        if on_one_thread:
            call.buffer = self.buffer
        self._step = recorder.latest_step
        self._start = time.perf_counter()

    def is_on_this_thread(self) -> bool:
        """True if the call began on this thread."""
        return self._state is RECORDER.get_thread_state()

    def finish(self, error: bool = False) -> None:
        """Ends the call. Never raises."""
        if self._on_one_thread:
            self._state.buffer = self._outer
        if error:
            record_error(self.buffer, self._probe, self._event_pair)
            return
        try:
            self._append(time.perf_counter())
            if self._event_pair is not None:
                finish_event_pair(self._probe, self._event_pair, self._step)
        except Exception as fault:  # noqa: BLE001 - the job's call has succeeded
            RECORDER.record_internal_error(fault)

    def _append(self, end: float) -> None:
        buffer, recorder = self.buffer, RECORDER
        lookups = self.lookups()
        calls: DurationSink
        if self._step is not recorder.latest_step:
            calls = recorder.choose_list(buffer, self._step, self._start, lookups)
        elif not recorder.lookup_step:
            calls = buffer.plain
        else:
            calls = buffer.choose_list(lookups)
        calls.append(end - self._start)
        if end > recorder.next_check_at:
            recorder.shorten_if_long(buffer, end)

    def lookups(self) -> tuple[int, int] | None:
        """Guard hits and misses during the call. None for a call that shared its thread with
        others."""
        call = self._state
        return (call.hits - self._hits, call.misses - self._misses) if self._on_one_thread else None


CallType = TypeVar("CallType", bound=TimedCall)


def wrap_with_options(
    fn: Callable[..., Any], spec: RegionSpec, base: int, skip: int = 0
) -> Callable[..., Any]:
    """Wraps a plain callable that has the job's own `bucket` or `items`."""

    def call_watched(*args: Any, **kwargs: Any) -> Any:
        call = start_call(TimedCall, spec, base, args[skip:], kwargs)
        if call is None:
            return fn(*args, **kwargs)
        try:
            result = fn(*args, **kwargs)
        except BaseException:
            call.finish(error=True)
            raise
        call.finish()
        if spec.items is not None:
            count_items(call, spec, spec.items, args[skip:], kwargs)
        return result

    return call_watched


def start_call(
    kind: type[CallType], spec: RegionSpec, base: int, args: tuple[Any, ...], kwargs: dict[str, Any]
) -> CallType | None:
    """Starts a call. Returns None while the agent is off, or after an error of the agent."""
    if RECORDER.buffers is None:
        return None
    try:
        bucket: int | str = (
            bucket_of(args, kwargs) if spec.bucket is None else _find_bucket(spec, args, kwargs)
        )
        return kind(base, bucket)
    except Exception as error:  # noqa: BLE001 - the call continues
        RECORDER.record_internal_error(error)
        return None


def _find_bucket(spec: RegionSpec, args: tuple[Any, ...], kwargs: dict[str, Any]) -> str:
    """The bucket from the job's own callable. If that callable fails, the call is counted under
    `other`."""
    try:
        assert spec.bucket is not None
        return spec.admit_bucket(str(spec.bucket(*args, **kwargs))[:MAX_BUCKET_TEXT])
    except Exception as error:  # noqa: BLE001 - the job's own callable failed; its call continues
        record_callable_fault(spec, "bucket", error)
        return OTHER


def count_items(
    call: TimedCall,
    spec: RegionSpec,
    items: Any,
    args: tuple[Any, ...] = (),
    kwargs: dict[str, Any] | None = None,
) -> None:
    """Adds the items of a finished call: a number, or the result of the job's own callable. Adds
    none if that callable fails."""
    try:
        call.buffer.items.append(
            item_count(items(*args, **(kwargs or {})) if callable(items) else items)
        )
    except Exception as error:  # noqa: BLE001 - the job's callable or value; its call succeeded
        record_callable_fault(spec, "items", error)


def record_callable_fault(spec: RegionSpec, option: str, error: Exception) -> None:
    """Counts an error of the job's own `items` or `bucket`. After 20 errors the callable is
    disabled. Never raises."""
    try:
        count = spec.fault_counts[option] = spec.fault_counts.get(option, 0) + 1
        if count == MAX_CALLABLE_FAULTS:
            setattr(spec, option, None)
        if count in (1, MAX_CALLABLE_FAULTS):
            state = "failed" if count == 1 else f"failed {count} times and is disabled"
            RECORDER.record_fact(
                "mark",
                {"name": f"{option}() of {spec.name} {state}", "reason": type(error).__name__},
            )
    except Exception as fault:  # noqa: BLE001 - runs inside a call of the job
        RECORDER.record_internal_error(fault)


def item_count(items: Any) -> float:
    """Returns the validated number of items. An invalid number would make the whole window invalid.

    Raises ValueError, TypeError or any error of the job's own type."""
    number = float(items)
    if not (math.isfinite(number) and 0 <= number <= MAX_ITEMS):
        raise ValueError(f"items must be a number from 0 to {MAX_ITEMS:.0e}, got {number}")
    return number
