"""The path of every watched call: no lock, no I/O, one append; how much it costs is measured by tests/bench/bench_watch.py."""

from __future__ import annotations

import inspect
import operator
from collections.abc import Callable, Iterator
from threading import get_ident
from time import perf_counter
from typing import Any

from compilewatch.instrument import kill_switch
from compilewatch.recording.call_sampling import NONE_LEFT, Sampling
from compilewatch.recording.recorder import RECORDER
from compilewatch.recording.region_spec import NESTED
from compilewatch.recording.series_buffer import NOWHERE, Line
from compilewatch.recording.thread_state import Call
from compilewatch.recording.untimed_calls import COUNTING

NOBODYS = Call()
NOBODYS.thread = 0
home = NOBODYS
"""The record of the thread that called last, most likely the one that calls next: to ask whether it is takes the processor through a
tenth of the code and memory of a thread's own storage, which the job has driven out of its caches."""
tracing: Callable[[], bool] = bool
"""Whether torch is tracing the caller, which must then find nothing of ours to trace; torch's own answer once it is imported."""
sizes: dict[type, Any] = {}
"""By type of argument: how to count the elements of a tensor, or None for what is no tensor."""
MAX_SIZES = 1000
bits = int.bit_length
"""Fails for a symbolic count, which the method would turn into a constant of the graph that torch is tracing."""
MOST_ELEMENTS = (1 << 63) - 1


def call_wrapper(fn: Callable[..., Any], base: int) -> Callable[..., Any]:
    """A plain callable without options."""
    spec = RECORDER.specs.all[base >> 8]
    if spec.wrap is None:
        spec.wrap = wrapper_of(base, *spec.samplings)
    return spec.wrap(fn)


def wrapper_of(
    base: int, alone: Sampling, inside: Sampling
) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """What wraps the plain callables of one region, which take their tickets from one stack: a call that gets one is counted, not timed.

    What runs between two steps of the job has left the processor's caches, and each instruction of the interpreter costs 20 ns there: a
    call with a ticket does nothing but take it, and is found by its frame while it runs."""
    tickets = NONE_LEFT
    counting = False  # whether there are tickets at times, for calls that are outermost or for those that are not

    def hand_out(given: Iterator[Sampling]) -> None:
        nonlocal tickets, counting
        alone.tickets = inside.tickets = tickets = (
            given  # no call in between: no other thread finds one without the others
        )
        counting = given is not NONE_LEFT

    def wrap(fn: Callable[..., Any]) -> Callable[..., Any]:
        straight = kill_switch.straight(fn)

        def watched(*args: Any, **kwargs: Any) -> Any:
            for skip_token in tickets:  # once at most, which is the quickest way to take one
                try:
                    # Without keywords no dictionary is copied.
                    return straight(*args, **kwargs) if kwargs else straight(*args)
                except BaseException:
                    failed_untimed(skip_token, args, kwargs)
                    raise
            recorder = RECORDER
            lines = recorder.lines
            if lines is None:
                return fn(*args, **kwargs)
            call = home
            if call.thread != get_ident():
                call = own_call()
            outer = call.line
            key = base
            if outer is not None:
                key += NESTED
                if not outer.holds:
                    outer.holds_another()
            try:
                if args:
                    arg = args[
                        0
                    ]  # most often the tensor, and found quicker than by a loop; a module's is the module
                    size = sizes[type(arg)]
                    if size is not None:
                        key += bits(size(arg))
                    else:
                        for arg in args:
                            size = sizes[type(arg)]
                            if size is not None:
                                key += bits(size(arg))
                                break
                        else:
                            if kwargs:
                                key += bucket_of((), kwargs)
                elif kwargs:
                    key += bucket_of((), kwargs)
                line = lines[key]
            except Exception:  # noqa: BLE001 - the first call of its kind, or an argument that cannot say its size
                line = prepared(base if outer is None else base + NESTED, args, kwargs)
            if counting and line.sampling.every == 1:
                hand_out(
                    NONE_LEFT
                )  # calls of the other kind are only counted, and would take this one for one of theirs
            pair = probe = line.probe
            if probe is not None:
                pair = probe.begin()
            stretch, hits, misses = recorder.stretch, call.hits, call.misses
            start = perf_counter()
            try:
                call.line = line
                result = fn(*args, **kwargs) if kwargs else fn(*args)
                call.line = outer
            except BaseException:
                call.line = outer
                failed(line, probe, pair)
                raise
            try:
                end = perf_counter()
                if stretch is not recorder.stretch:
                    recorder.disturbed(
                        line, stretch, start, (call.hits - hits, call.misses - misses)
                    ).append(end - start)
                elif not recorder.token:
                    line.plain.append(end - start)
                elif hits == call.hits:
                    line.idle.append(end - start)
                elif misses == call.misses:
                    line.compiled.append(end - start)
                else:
                    line.partial.append(end - start)
                if pair is not None:
                    finish_pair(probe, pair, stretch)
                if end > recorder.look_at:
                    recorder.look(line, end)
                if counting:
                    line.sampling.draw()  # not before: a call inside this one must find no ticket, and see that it is inside
            except Exception as error:  # noqa: BLE001 - the job's call is over and succeeded
                recorder.internal_error(error)
            return result

        COUNTING.add(watched.__code__)
        return watched

    alone.hand_out = inside.hand_out = hand_out
    alone.base, inside.base = base, base + NESTED
    return wrap


def own_call() -> Call:
    """The record of a thread that did not make the last call; never raises."""
    global home
    try:
        call = home = RECORDER.call()
    except Exception as error:  # noqa: BLE001 - this runs inside a call of the job, which goes on
        RECORDER.internal_error(error)
        return Call()
    return call


def prepared(key: int, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Line:
    """The call's line the long way round, by its key without the bucket; never raises."""
    try:
        key += bucket_of(args, kwargs)
        lines = RECORDER.lines
        line = None if lines is None else lines.get(key)
        return RECORDER.line(key) if line is None else line
    except Exception as error:  # noqa: BLE001 - this runs inside a call of the job, which goes on unseen
        RECORDER.internal_error(error)
        return NOWHERE


def failed_untimed(sampling: Sampling, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
    """A call that was not to be timed raised."""
    if not RECORDER.sampler.met.failed(sampling):
        sampling.undone.append(1)
    failed(prepared(sampling.base, args, kwargs), None, None)


def failed(line: Line, probe: Any, pair: Any) -> None:
    """The call raised."""
    try:
        line.errors.append(1)
        if pair is not None:
            probe.drop(pair)
    except Exception as error:  # noqa: BLE001 - the job's own exception is on its way
        RECORDER.internal_error(error)


def finish_pair(probe: Any, pair: Any, stretch: int) -> None:
    """Between the events of a call that compiled lies the compiler's time, not the GPU's."""
    (probe.drop if RECORDER.epoch > stretch else probe.end)(pair)


def bucket_of(args: tuple[Any, ...], kwargs: dict[str, Any]) -> int:
    """1 + log2 of the element count of the first tensor argument; 0 if there is none."""
    for arg in args:
        size = size_of(type(arg))
        if size is not None:
            return log2(size, arg)
    for arg in kwargs.values():
        size = size_of(type(arg))
        if size is not None:
            return log2(size, arg)
    return 0


def size_of(kind: type) -> Any:
    """How to count the elements of what is of this type, if it is a tensor."""
    try:
        return sizes[kind]
    except KeyError:
        pass
    size = getattr(kind, "numel", None) if hasattr(kind, "dtype") else None
    if kind.__module__ == "numpy" and kind.__name__ == "ndarray":
        size = kind.size.__get__  # type: ignore[attr-defined]
    elif kind.__name__ == "ArrayImpl" and kind.__module__.startswith("jaxlib"):
        size = sane(kind.size.__get__)  # type: ignore[attr-defined]
    elif size is not None and not inspect.ismethoddescriptor(size):
        size = sane(size) if callable(size) else None
    if len(sizes) >= MAX_SIZES:
        sizes.clear()
    sizes[kind] = size
    return size


def sane(size: Callable[[Any], Any]) -> Callable[[Any], int]:
    """The same for a type of the job's own: whatever it answers, the bucket stays within its bits."""
    return lambda arg: min(max(operator.index(size(arg)), 0), MOST_ELEMENTS)


def log2(size: Any, arg: Any) -> int:
    """1 + log2 of the tensor's element count; 0 if it has none."""
    try:
        return bits(size(arg))
    except Exception:  # noqa: BLE001 - while torch traces, a tensor may not know its size; that is no fault, and it has no bucket
        return 0
