"""Calls that need more than the shortest path: blocks, and the job's own buckets and items."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from contextvars import ContextVar
from typing import Any, TypeVar

from compilewatch.instrument.hotpath import bucket_of, failed, finish_pair
from compilewatch.recording.recorder import RECORDER
from compilewatch.recording.region_spec import NESTED, OTHER, Spec
from compilewatch.recording.series_buffer import Line
from compilewatch.recording.warm_up import Durations

MAX_ITEMS = 1e12
MAX_BUCKET_TEXT = 64
MAX_CALLABLE_FAULTS = 20


class Open:
    """A coroutine or generator under way, as the tasks that it starts find it in their context; `line` is None once it is over."""

    __slots__ = ("line",)

    def __init__(self, line: Line | None) -> None:
        self.line = line


NOWHERE_OPEN = Open(None)
OPEN: ContextVar[Open] = ContextVar("compilewatch_open")


class Running:
    """A call under way."""

    __slots__ = (
        "_call",
        "_hits",
        "_misses",
        "_outer",
        "_pair",
        "_probe",
        "_start",
        "_stays",
        "_stretch",
        "line",
    )

    def __init__(self, base: int, bucket: object = 0, stays: bool = True) -> None:
        """`stays`: the call begins and ends in one go on this thread, so that guard lookups and nested calls in between are its own."""
        recorder = RECORDER
        lines = recorder.lines
        call = self._call = recorder.call()
        outer = self._outer = call.line
        if outer is None and not stays:
            outer = OPEN.get(NOWHERE_OPEN).line
        nested = 0
        if outer is not None:
            nested = NESTED
            outer.holds_another()
        key: Any = base + nested + bucket if isinstance(bucket, int) else (base, nested, bucket)
        self.line: Line = recorder.line(key) if lines is None or key not in lines else lines[key]
        self._probe = self.line.probe if stays else None
        self._pair = None if self._probe is None else self._probe.begin()
        self._hits, self._misses = call.hits, call.misses
        self._stays = stays
        if stays:
            call.line = self.line
        self._stretch = recorder.stretch
        self._start = time.perf_counter()

    def is_mine(self) -> bool:
        """Whether it began on this thread."""
        return self._call is RECORDER.call()

    def finish(self, error: bool = False) -> None:
        """The call is over; never raises."""
        if self._stays:
            self._call.line = self._outer
        if error:
            failed(self.line, self._probe, self._pair)
            return
        try:
            self._append(time.perf_counter())
            if self._pair is not None:
                finish_pair(self._probe, self._pair, self._stretch)
        except Exception as fault:  # noqa: BLE001 - the job's call is over and succeeded
            RECORDER.internal_error(fault)

    def _append(self, end: float) -> None:
        line, recorder = self.line, RECORDER
        lookups = self.lookups()
        calls: Durations
        if self._stretch is not recorder.stretch:
            calls = recorder.disturbed(line, self._stretch, self._start, lookups)
        elif not recorder.token:
            calls = line.plain
        else:
            calls = line.looked_up(lookups)
        calls.append(end - self._start)
        if end > recorder.look_at:
            recorder.look(line, end)

    def lookups(self) -> tuple[int, int] | None:
        """Hits and misses of torch's lookups while it ran; what shared its thread with others cannot know."""
        call = self._call
        return (call.hits - self._hits, call.misses - self._misses) if self._stays else None


Kind = TypeVar("Kind", bound=Running)


def rich_wrapper(
    fn: Callable[..., Any], spec: Spec, base: int, skip: int = 0
) -> Callable[..., Any]:
    """A plain callable with the job's own `bucket` or `items`."""

    def watched(*args: Any, **kwargs: Any) -> Any:
        running = begin(Running, spec, base, args[skip:], kwargs)
        if running is None:
            return fn(*args, **kwargs)
        try:
            result = fn(*args, **kwargs)
        except BaseException:
            running.finish(error=True)
            raise
        running.finish()
        if spec.items is not None:
            count_items(running, spec, spec.items, args[skip:], kwargs)
        return result

    return watched


def begin(
    kind: type[Kind], spec: Spec, base: int, args: tuple[Any, ...], kwargs: dict[str, Any]
) -> Kind | None:
    """The call as it begins; None while the agent is off, or when it fails here."""
    if RECORDER.lines is None:
        return None
    try:
        bucket: int | str = (
            bucket_of(args, kwargs) if spec.bucket is None else _told_bucket(spec, args, kwargs)
        )
        return kind(base, bucket)
    except Exception as error:  # noqa: BLE001 - the call goes on
        RECORDER.internal_error(error)
        return None


def _told_bucket(spec: Spec, args: tuple[Any, ...], kwargs: dict[str, Any]) -> str:
    """The bucket that the job's own callable names; a call it fails for is counted under `other`."""
    try:
        assert spec.bucket is not None
        return spec.admit(str(spec.bucket(*args, **kwargs))[:MAX_BUCKET_TEXT])
    except Exception as error:  # noqa: BLE001 - the job's own callable; its call goes on
        callable_failed(spec, "bucket", error)
        return OTHER


def count_items(
    running: Running,
    spec: Spec,
    items: Any,
    args: tuple[Any, ...] = (),
    kwargs: dict[str, Any] | None = None,
) -> None:
    """Adds the items of a call that is over: a number, or what the job's own callable says; where that fails, none."""
    try:
        running.line.items.append(
            amount(items(*args, **(kwargs or {})) if callable(items) else items)
        )
    except Exception as error:  # noqa: BLE001 - the job's own callable or value; its call succeeded
        callable_failed(spec, "items", error)


def callable_failed(spec: Spec, option: str, error: Exception) -> None:
    """Counts a fault of the job's own `items` or `bucket`; after 20 the callable is not called any more. Never raises."""
    try:
        count = spec.faults[option] = spec.faults.get(option, 0) + 1
        if count == MAX_CALLABLE_FAULTS:
            setattr(spec, option, None)
        if count in (1, MAX_CALLABLE_FAULTS):
            state = "failed" if count == 1 else f"failed {count} times and is not called any more"
            RECORDER.fact(
                "mark",
                {"name": f"{option}() of {spec.name} {state}", "reason": type(error).__name__},
            )
    except Exception as fault:  # noqa: BLE001 - this runs inside a call of the job
        RECORDER.internal_error(fault)


def amount(items: Any) -> float:
    """The number of items, checked: what is no amount would cost the whole window. Raises ValueError, TypeError or what the job's own
    type raises."""
    number = float(items)
    if not (math.isfinite(number) and 0 <= number <= MAX_ITEMS):
        raise ValueError(f"items must be a number from 0 to {MAX_ITEMS:.0e}, got {number}")
    return number
