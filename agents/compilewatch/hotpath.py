"""The path of every watched call: no lock, no I/O, one append; how much it costs is measured by tests/bench/bench_watch.py."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from typing import Any

from compilewatch.lines import Line, Spec
from compilewatch.recorder import NESTED, RECORDER

tracing: Callable[[], bool] = bool
"""Whether torch is tracing the caller, which must then find nothing of ours to trace; torch's own answer once it is imported."""
MAX_ITEMS = 1e12
LONG = 1 << 16
"""Appended calls at which a line is binned by its caller, should the agent's thread not come by; one call in about a thousand looks."""


class Sizes(dict[type, Any]):
    """By type of argument: how to count the elements of a tensor, or None for what is no tensor."""

    def __missing__(self, kind: type) -> Any:
        if len(self) > 1000:
            self.clear()
        size = getattr(kind, "numel", None)
        if size is None and kind.__module__ == "numpy" and kind.__name__ == "ndarray":
            size = kind.size.__get__  # type: ignore[attr-defined]
        self[kind] = size if callable(size) else None
        return self[kind]


sizes = Sizes()


def bucket_of(args: tuple[Any, ...], kwargs: dict[str, Any]) -> int:
    """1 + log2 of the element count of the first tensor argument; 0 if there is none."""
    for arg in args:
        size = sizes[type(arg)]
        if size is not None:
            return log2(size, arg)
    for arg in kwargs.values():
        size = sizes[type(arg)]
        if size is not None:
            return log2(size, arg)
    return 0


def log2(size: Any, arg: Any) -> int:
    """1 + log2 of the tensor's element count; 0 if it has none."""
    try:
        return size(arg).bit_length()  # type: ignore[no-any-return]
    except Exception:  # noqa: BLE001 - while torch traces, a tensor may not know its size; that is no fault, and it has no bucket
        return 0


def call_wrapper(fn: Callable[..., Any], spec: Spec, base: int, skip: int = 0) -> Callable[..., Any]:
    """A plain callable; `skip` leaves out `self` where a tensor is looked for. Options that cost more go by the longer way."""
    if spec.items is not None or spec.bucket is not None:
        return rich_wrapper(fn, spec, base, skip)
    recorder, current, clock, rest = RECORDER, RECORDER.current, time.perf_counter_ns, skip + 1

    def watched(*args: Any, **kwargs: Any) -> Any:
        lines = recorder.lines
        if lines is None:
            return fn(*args, **kwargs)
        try:
            call = current.call
        except AttributeError:
            call = recorder.call()
        outer = call.line
        key = base if outer is None else base + NESTED
        if args and (not skip or len(args) > skip):
            size = sizes[type(args[skip])]
            key += bucket_of(args[rest:], kwargs) if size is None else log2(size, args[skip])
        elif kwargs:
            key += bucket_of((), kwargs)
        try:
            line = lines[key]
        except KeyError:
            line = recorder.line(key)
        call.line = line
        probe = line.probe
        pair = None if probe is None else probe.begin()
        epoch, token = recorder.epoch, recorder.token
        if token:
            hits, misses = call.hits, call.misses
        start = clock()
        try:
            # Without keywords no dictionary is copied.
            result = fn(*args, **kwargs) if kwargs else fn(*args)
        except BaseException:
            call.line = outer
            line.errors.append(1)
            if probe is not None and pair is not None:
                probe.drop(pair)
            raise
        took = clock() - start
        call.line = outer
        if epoch != recorder.epoch:
            line.warmup.append(took)
        elif not token or token != recorder.token:
            line.plain.append(took)
        elif hits == call.hits:
            line.idle.append(took)
        elif misses == call.misses:
            line.compiled.append(took)
        else:
            line.partial.append(took)
        if probe is not None and pair is not None:
            # Between the events of a call that compiled lies the compiler's time, not the GPU's.
            (probe.end if epoch == recorder.epoch else probe.drop)(pair)
        if not took & 1023 and line.waiting() > LONG:
            recorder.relieve(line)
        return result

    return watched


class Running:
    """A call under way, for everything that is no plain call: blocks, custom buckets, items, coroutines, generators."""

    __slots__ = ("_call", "_epoch", "_hits", "_misses", "_outer", "_pair", "_start", "_stays", "_token", "line")

    def __init__(self, base: int, bucket: object = 0, stays: bool = True) -> None:
        """`stays`: the call begins and ends in one go on this thread, so that guard lookups and nested calls in between are its own."""
        recorder = RECORDER
        lines = recorder.lines
        call = self._call = recorder.call()
        outer = self._outer = call.line
        nested = 0 if outer is None else NESTED
        key: Any = base + nested + bucket if isinstance(bucket, int) else (base, nested, bucket)
        self.line: Line = recorder.line(key) if lines is None or key not in lines else lines[key]
        self._pair = None if self.line.probe is None or not stays else self.line.probe.begin()
        self._hits, self._misses = call.hits, call.misses
        self._token = recorder.token if stays else 0
        self._stays = stays
        if stays:
            call.line = self.line
        self._epoch = recorder.epoch
        self._start = time.perf_counter_ns()

    def is_mine(self) -> bool:
        """Whether it began on this thread."""
        return self._call is RECORDER.call()

    def finish(self, failed: bool = False, items: float | None = None) -> None:
        """The call is over."""
        took = time.perf_counter_ns() - self._start
        line, call, recorder = self.line, self._call, RECORDER
        if self._stays:
            call.line = self._outer
        if failed:
            line.errors.append(1)
            if self._pair is not None and line.probe is not None:
                line.probe.drop(self._pair)
            return
        if self._epoch != recorder.epoch:
            line.warmup.append(took)
        elif not self._token or self._token != recorder.token:
            line.plain.append(took)
        elif self._hits == call.hits:
            line.idle.append(took)
        elif self._misses == call.misses:
            line.compiled.append(took)
        else:
            line.partial.append(took)
        if items is not None:
            line.items.append(items)
        if self._pair is not None and line.probe is not None:
            (line.probe.end if self._epoch == recorder.epoch else line.probe.drop)(self._pair)


def rich_wrapper(fn: Callable[..., Any], spec: Spec, base: int, skip: int) -> Callable[..., Any]:
    def watched(*args: Any, **kwargs: Any) -> Any:
        running = begin(spec, base, args[skip:], kwargs)
        if running is None:
            return fn(*args, **kwargs)
        try:
            result = fn(*args, **kwargs)
        except BaseException:
            running.finish(failed=True)
            raise
        running.finish(items=items_of(spec, args[skip:], kwargs))
        return result

    return watched


def begin(spec: Spec, base: int, args: tuple[Any, ...], kwargs: dict[str, Any], stays: bool = True) -> Running | None:
    """The call as it begins; None while the agent is off, or when it fails here."""
    if RECORDER.lines is None:
        return None
    try:
        bucket: int | str = bucket_of(args, kwargs) if spec.bucket is None else str(spec.bucket(*args, **kwargs))[:64]
        return Running(base, bucket, stays)
    except Exception as error:  # noqa: BLE001 - a bucket callable of the job's, or our own fault: the call goes on
        RECORDER.internal_error(error)
        return None


def items_of(spec: Spec, args: tuple[Any, ...], kwargs: dict[str, Any]) -> float | None:
    if spec.items is None:
        return None
    try:
        return amount(spec.items(*args, **kwargs))
    except Exception as error:  # noqa: BLE001 - the job's own callable; its call is over and succeeded
        RECORDER.internal_error(error)
        return None


def amount(items: Any) -> float | None:
    """How many items the job says it worked on; None, and counted, for what is no amount: it would cost the whole window."""
    try:
        number = float(items)
        if not (math.isfinite(number) and 0 <= number <= MAX_ITEMS):
            raise ValueError(f"items must be a number from 0 to {MAX_ITEMS:.0e}, got {number}")
    except Exception as error:  # noqa: BLE001 - the job's own value
        RECORDER.internal_error(error)
        return None
    return number
