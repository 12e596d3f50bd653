"""Hot path: the wrapper of every watched call. No lock, no I/O, one append.

Algorithm. An untimed call takes a skip token and calls the original; see
`recording/call_sampling.py`. A timed call finds its buffer by an integer key: spec number, nesting
bit, and log2 of the element count of the first tensor. It reads the clock twice and appends the
duration to one list. The counters before and after the call select the list: no change of step
means a steady call, and the guard hits and misses of this thread decide between compiled, partial
and unmatched.

Invariants. `list.append`, `dict.__getitem__` and `next` on a tuple iterator are single steps of the
interpreter: the GIL is the only synchronisation, and on a free-threaded build the agent is off. The
wrapper restores `call.buffer` on every path. Errors of the agent never reach the job: each `except`
records the error and lets the call continue. Errors of the job pass unchanged. `own_thread` is a
one-entry cache of the thread state. A stale entry is harmless, because each call compares its
thread ID.

Cost. `tests/bench/bench_watch.py` measures it and fails above its limits. Between two steps, the
job evicts the agent's code and data from the processor's caches, so the number of touched objects
counts, not the number of instructions. Any helper function here costs more than the code that it
would contain.

Source: own design. The skip counter is that of sampling profilers; the one-entry cache is an
inline cache."""

from __future__ import annotations

import inspect
import operator
from collections.abc import Callable, Iterator
from threading import get_ident
from time import perf_counter
from typing import Any

from compilewatch.instrument import kill_switch
from compilewatch.recording.call_sampling import NO_TOKENS, Sampling
from compilewatch.recording.recorder import RECORDER
from compilewatch.recording.region_spec import NESTED_BIT
from compilewatch.recording.series_buffer import DISCARD_BUFFER, SeriesBuffer
from compilewatch.recording.thread_state import ThreadState
from compilewatch.recording.untimed_calls import SKIPPING_CODE

NO_THREAD = ThreadState()
NO_THREAD.thread_id = 0
own_thread = NO_THREAD
"""State of the thread that called last, which is most likely to call next.

Comparing its thread ID touches a tenth of the code and memory of a thread-local lookup. The job
has evicted that memory from the caches."""
is_tracing: Callable[[], bool] = bool
"""True while torch traces the caller, which must not see the agent's code. Set to torch's own
function once torch is imported."""
size_getters: dict[type, Any] = {}
"""By argument type: a function that counts the elements of a tensor, or None for other types."""
MAX_SIZE_GETTERS = 1000
bit_length = int.bit_length
"""Fails for a symbolic count. The bound method would turn the count into a constant of the
traced graph."""
MAX_ELEMENTS = (1 << 63) - 1


def wrap_call(fn: Callable[..., Any], base: int) -> Callable[..., Any]:
    """Wraps a plain callable without options."""
    spec = RECORDER.specs.all[base >> 8]
    if spec.wrap is None:
        spec.wrap = build_wrapper(base, *spec.samplings)
    return spec.wrap(fn)


def build_wrapper(
    base: int, outermost: Sampling, nested: Sampling
) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Builds the function that wraps the plain callables of one region. They take skip tokens from
    one iterator.

    A call that takes a token is counted, not timed. Between two steps, the job evicts the
    agent's code from the caches, where each instruction of the interpreter costs 20 ns. A call
    with a token therefore only takes the token, and its frame identifies it while it runs."""
    skip_tokens = NO_TOKENS
    has_tokens = False  # True if outermost or nested calls get tokens at times

    def hand_out(new_tokens: Iterator[Sampling]) -> None:
        nonlocal skip_tokens, has_tokens
        # Without a call in between, no other thread sees one assignment without the others.
        outermost.skip_tokens = nested.skip_tokens = skip_tokens = new_tokens
        has_tokens = new_tokens is not NO_TOKENS

    def wrap(fn: Callable[..., Any]) -> Callable[..., Any]:
        bypass = kill_switch.bypass(fn)

        def call_watched(*args: Any, **kwargs: Any) -> Any:
            for skip_token in skip_tokens:  # runs at most once; the fastest way to take a token
                try:
                    # Without keywords, no dictionary is copied.
                    return bypass(*args, **kwargs) if kwargs else bypass(*args)
                except BaseException:
                    record_untimed_error(skip_token, args, kwargs)
                    raise
            recorder = RECORDER
            buffers = recorder.buffers
            if buffers is None:
                return fn(*args, **kwargs)
            call = own_thread
            if call.thread_id != get_ident():
                call = find_thread_state()
            outer = call.buffer
            key = base
            if outer is not None:
                key += NESTED_BIT
                if not outer.has_nested_calls:
                    outer.record_nested_call()
            try:
                if args:
                    # Most often the tensor, and faster than a loop; for a module, the module.
                    arg = args[0]
                    size = size_getters[type(arg)]
                    if size is not None:
                        key += bit_length(size(arg))
                    else:
                        for arg in args:
                            size = size_getters[type(arg)]
                            if size is not None:
                                key += bit_length(size(arg))
                                break
                        else:
                            if kwargs:
                                key += bucket_of((), kwargs)
                elif kwargs:
                    key += bucket_of((), kwargs)
                buffer = buffers[key]
            except Exception:  # noqa: BLE001 - first call of its kind, or argument without a size
                buffer = find_buffer(base if outer is None else base + NESTED_BIT, args, kwargs)
            if has_tokens and buffer.sampling.calls_per_timed == 1:
                # Untimed calls of the other nesting would count this call as one of theirs.
                hand_out(NO_TOKENS)
            event_pair = probe = buffer.probe
            if probe is not None:
                event_pair = probe.begin()
            step, hits, misses = recorder.latest_step, call.hits, call.misses
            start = perf_counter()
            try:
                call.buffer = buffer
                result = fn(*args, **kwargs) if kwargs else fn(*args)
                call.buffer = outer
            except BaseException:
                call.buffer = outer
                record_error(buffer, probe, event_pair)
                raise
            try:
                end = perf_counter()
                if step is not recorder.latest_step:
                    recorder.choose_list(
                        buffer, step, start, (call.hits - hits, call.misses - misses)
                    ).append(end - start)
                elif not recorder.lookup_step:
                    buffer.plain.append(end - start)
                elif hits == call.hits:
                    buffer.unmatched.append(end - start)
                elif misses == call.misses:
                    buffer.compiled.append(end - start)
                else:
                    buffer.partial.append(end - start)
                if event_pair is not None:
                    finish_event_pair(probe, event_pair, step)
                if end > recorder.next_check_at:
                    recorder.shorten_if_long(buffer, end)
                if has_tokens:
                    # Last, so that a nested call finds no token and records its nesting.
                    buffer.sampling.draw_skips()
            except Exception as error:  # noqa: BLE001 - the job's call has succeeded
                recorder.record_internal_error(error)
            return result

        SKIPPING_CODE.add(call_watched.__code__)
        return call_watched

    outermost.publish_tokens = nested.publish_tokens = hand_out
    outermost.base_key, nested.base_key = base, base + NESTED_BIT
    return wrap


def find_thread_state() -> ThreadState:
    """Finds the state of a thread that did not make the last call. Never raises."""
    global own_thread
    try:
        call = own_thread = RECORDER.get_thread_state()
    except Exception as error:  # noqa: BLE001 - runs inside a call of the job, which continues
        RECORDER.record_internal_error(error)
        return ThreadState()
    return call


def find_buffer(key: int, args: tuple[Any, ...], kwargs: dict[str, Any]) -> SeriesBuffer:
    """Finds the buffer of a call by the slow path, from its key without the bucket. Never
    raises."""
    try:
        key += bucket_of(args, kwargs)
        buffers = RECORDER.buffers
        buffer = None if buffers is None else buffers.get(key)
        return RECORDER.add_buffer(key) if buffer is None else buffer
    except Exception as error:  # noqa: BLE001 - runs inside a call of the job, which continues
        RECORDER.record_internal_error(error)
        return DISCARD_BUFFER


def record_untimed_error(sampling: Sampling, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
    """Records that an untimed call raised."""
    if not RECORDER.sampler.overlaps.drop_failed(sampling):
        sampling.corrections.append(1)
    record_error(find_buffer(sampling.base_key, args, kwargs), None, None)


def record_error(buffer: SeriesBuffer, probe: Any, event_pair: Any) -> None:
    """Records that the call raised."""
    try:
        buffer.errors.append(1)
        if event_pair is not None:
            probe.drop(event_pair)
    except Exception as error:  # noqa: BLE001 - the job's own exception is propagating
        RECORDER.record_internal_error(error)


def finish_event_pair(probe: Any, event_pair: Any, step: int) -> None:
    """Ends an event pair. The pair of a call that compiled is dropped: it spans compile time,
    not GPU time."""
    (probe.drop if RECORDER.compile_step > step else probe.end)(event_pair)


def bucket_of(args: tuple[Any, ...], kwargs: dict[str, Any]) -> int:
    """1 + log2 of the element count of the first tensor argument; 0 without one."""
    for arg in args:
        size = size_getter_of(type(arg))
        if size is not None:
            return size_bucket(size, arg)
    for arg in kwargs.values():
        size = size_getter_of(type(arg))
        if size is not None:
            return size_bucket(size, arg)
    return 0


def size_getter_of(kind: type) -> Any:
    """The function that counts the elements of this type; None if the type is no tensor."""
    try:
        return size_getters[kind]
    except KeyError:
        pass
    size = getattr(kind, "numel", None) if hasattr(kind, "dtype") else None
    if kind.__module__ == "numpy" and kind.__name__ == "ndarray":
        size = kind.size.__get__  # type: ignore[attr-defined]
    elif kind.__name__ == "ArrayImpl" and kind.__module__.startswith("jaxlib"):
        size = clamp_size(kind.size.__get__)  # type: ignore[attr-defined]
    elif size is not None and not inspect.ismethoddescriptor(size):
        size = clamp_size(size) if callable(size) else None
    if len(size_getters) >= MAX_SIZE_GETTERS:
        size_getters.clear()
    size_getters[kind] = size
    return size


def clamp_size(size: Callable[[Any], Any]) -> Callable[[Any], int]:
    """Wraps the size function of a type of the job. The bucket stays within its bits for any
    result."""
    return lambda arg: min(max(operator.index(size(arg)), 0), MAX_ELEMENTS)


def size_bucket(size: Any, arg: Any) -> int:
    """1 + log2 of the tensor's element count; 0 without elements."""
    try:
        return bit_length(size(arg))
    except Exception:  # noqa: BLE001 - a traced tensor may have no size; that is no error
        return 0
