"""Suspended calls: wrappers of coroutines, generators and async generators.

Calls and tasks that a suspended call starts are nested in it. Other work on the same thread in
the meantime is not. While a call is suspended, its wrapper keeps alive nothing that the callable
has released: no item, no sent value, no exception. It keeps arguments only if the job's own
`items` will need them."""

from __future__ import annotations

import inspect
import types
from collections.abc import AsyncGenerator, Callable, Generator
from typing import Any

from compilewatch.instrument.segments import Segments
from compilewatch.instrument.timed_call import count_items, start_call
from compilewatch.recording.recorder import RECORDER
from compilewatch.recording.region_spec import RegionSpec


def wrap_coroutine(
    fn: Callable[..., Any], spec: RegionSpec, base: int, skip: int = 0
) -> Callable[..., Any]:
    """Wraps an async function. Times the wall time from its first step to its end."""

    async def call_watched(*args: Any, **kwargs: Any) -> Any:
        call = start_call(Segments, spec, base, args[skip:], kwargs)
        if call is None:
            return await fn(*args, **kwargs)
        inner = fn(*args, **kwargs)
        if spec.items is None:
            args, kwargs = (), {}
        try:
            result = await wrap_awaitable(inner, call)
        except BaseException:
            call.finish(error=True)
            raise
        call.finish()
        if spec.items is not None:
            count_items(call, spec, spec.items, args[skip:], kwargs)
        return result

    return call_watched


class GeneratorRun:
    """One run of a generator: the time to the first item and the total time."""

    __slots__ = ("_args", "_first", "_kwargs", "_spec", "segments")

    def __init__(
        self,
        spec: RegionSpec,
        base: int,
        first_base: int,
        args: tuple[Any, ...],
        kwargs: dict[str, Any],
    ) -> None:
        self._spec = spec
        self.segments = start_call(Segments, spec, base, args, kwargs)
        self._first = (
            None
            if self.segments is None
            else start_call(Segments, FIRST_ITEM_SPEC, first_base, (), {})
        )
        self._args, self._kwargs = (args, kwargs) if spec.items is not None else ((), {})

    def record_item(self) -> None:
        """Records an item. The first item is timed, with the lookups until then."""
        if self._first is not None and self.segments is not None:
            self._first.hits, self._first.misses = self.segments.hits, self.segments.misses
            self._first.finish()
            self._first = None

    def end(self, error: bool = False, whole: bool = True) -> None:
        """Records the end of the run. `whole`: the generator ended on its own, so its items
        count."""
        if self.segments is not None:
            self.segments.finish(error)
            if whole and not error and self._spec.items is not None:
                count_items(self.segments, self._spec, self._spec.items, self._args, self._kwargs)


FIRST_ITEM_SPEC = RegionSpec("first item")


def _register_first_item(spec: RegionSpec) -> int:
    """Base of the buffer keys of the region that holds the time to the first item."""
    return RECORDER.register(RegionSpec(f"{spec.name}/first item", spec.mode, spec.runtime))


class CoroutineCall(Generator[Any, Any, Any]):
    """Drives the inner coroutine segment by segment, for `yield from` and `await`."""

    __slots__ = ("_inner", "_segments")

    def __init__(self, inner: Any, segments: Segments) -> None:
        self._inner = inner
        self._segments = segments

    def __await__(self) -> CoroutineCall:
        return self

    def send(self, value: Any) -> Any:
        self._segments.enter()
        try:
            return self._inner.send(value)
        finally:
            self._segments.leave()

    def throw(self, *error: Any) -> Any:
        self._segments.enter()
        try:
            return self._inner.throw(*error)
        finally:
            self._segments.leave()

    def close(self) -> None:
        self._segments.enter()
        try:
            self._inner.close()
        finally:
            self._segments.leave()


class GeneratorCall(CoroutineCall):
    """Drives a generator segment by segment. Each segment ends with an item."""

    __slots__ = ("_run",)

    def __init__(
        self, inner: Generator[Any, Any, Any], segments: Segments, run: GeneratorRun
    ) -> None:
        super().__init__(inner, segments)
        self._run = run

    def send(self, value: Any) -> Any:
        item = super().send(value)
        self._run.record_item()
        return item

    def throw(self, *error: Any) -> Any:
        item = super().throw(*error)
        self._run.record_item()
        return item


def wrap_awaitable(inner: Any, segments: Segments | None) -> Any:
    """The object to await instead of `inner`. An awaitable without single steps is returned
    unchanged."""
    if segments is None or not hasattr(inner, "__await__"):
        return inner
    steps = inner.__await__()
    return (
        CoroutineCall(steps, segments) if isinstance(steps, Generator) else StartedAwaitable(steps)
    )


class StartedAwaitable:
    """Awaitable for an iterator that `__await__` has already returned."""

    __slots__ = ("_steps",)

    def __init__(self, steps: Any) -> None:
        self._steps = steps

    def __await__(self) -> Any:
        return self._steps


def wrap_generator(
    fn: Callable[..., Any], spec: RegionSpec, base: int, skip: int = 0
) -> Callable[..., Any]:
    """Wraps a generator function. Times the first item and the whole run."""
    first_base = _register_first_item(spec)

    def call_watched(*args: Any, **kwargs: Any) -> Generator[Any, Any, Any]:
        run = GeneratorRun(spec, base, first_base, args[skip:], kwargs)
        inner = fn(*args, **kwargs)
        steps = inner if run.segments is None else GeneratorCall(inner, run.segments, run)
        del args, kwargs, inner
        try:
            result: Any = yield from steps
        except GeneratorExit:
            run.end(whole=False)
            raise
        except BaseException:
            run.end(error=True)
            raise
        run.end()
        return result

    # Older libraries make a generator awaitable with `types.coroutine`, which sets a flag in the
    # code object.
    flags = getattr(getattr(fn, "__code__", None), "co_flags", 0)
    return types.coroutine(call_watched) if flags & inspect.CO_ITERABLE_COROUTINE else call_watched


def wrap_async_generator(
    fn: Callable[..., Any], spec: RegionSpec, base: int, skip: int = 0
) -> Callable[..., Any]:
    """Wraps an async generator function. Times the first item and the whole run."""
    first_base = _register_first_item(spec)

    async def call_watched(*args: Any, **kwargs: Any) -> AsyncGenerator[Any, Any]:
        run = GeneratorRun(spec, base, first_base, args[skip:], kwargs)
        inner = fn(*args, **kwargs)
        del args, kwargs
        step: Callable[[Any], Any] = inner.asend
        handover: list[Any] = [None]
        try:
            while True:
                handover.append(await wrap_awaitable(step(handover.pop()), run.segments))
                run.record_item()
                try:
                    handover.append((yield handover.pop()))
                    step = inner.asend
                except GeneratorExit:
                    await wrap_awaitable(inner.aclose(), run.segments)
                    raise
                except BaseException as error:  # noqa: BLE001 - passed to the inner generator
                    handover.append(error)
                    step = inner.athrow
        except StopAsyncIteration:
            run.end()
        except GeneratorExit:
            run.end(whole=False)
            raise
        except BaseException:
            run.end(error=True)
            raise

    return call_watched
