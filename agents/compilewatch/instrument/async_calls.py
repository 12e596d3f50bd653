"""Calls that are suspended on their way: coroutines and generators. What they call, or start as a task, is inside them; what others do on
their thread meanwhile is not.

While one is suspended, its wrapper keeps nothing alive that the callable has let go: no item, no value sent, no exception; arguments
only where the job's own `items` will ask for them."""

from __future__ import annotations

import inspect
import types
from collections.abc import AsyncGenerator, Callable, Generator
from typing import Any

from compilewatch.instrument.segments import Pieces
from compilewatch.instrument.timed_call import begin, count_items
from compilewatch.recording.recorder import RECORDER
from compilewatch.recording.region_spec import Spec


def coroutine_wrapper(
    fn: Callable[..., Any], spec: Spec, base: int, skip: int = 0
) -> Callable[..., Any]:
    """An async function: wall time from its first step to its end."""

    async def watched(*args: Any, **kwargs: Any) -> Any:
        running = begin(Pieces, spec, base, args[skip:], kwargs)
        if running is None:
            return await fn(*args, **kwargs)
        inner = fn(*args, **kwargs)
        if spec.items is None:
            args, kwargs = (), {}
        try:
            result = await awaited(inner, running)
        except BaseException:
            running.finish(error=True)
            raise
        running.finish()
        if spec.items is not None:
            count_items(running, spec, spec.items, args[skip:], kwargs)
        return result

    return watched


class Stream:
    """One run of a generator: the time to its first item, and in all."""

    __slots__ = ("_args", "_first", "_kwargs", "_spec", "whole")

    def __init__(
        self, spec: Spec, base: int, first_base: int, args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> None:
        self._spec = spec
        self.whole = begin(Pieces, spec, base, args, kwargs)
        self._first = None if self.whole is None else begin(Pieces, FIRST, first_base, (), {})
        self._args, self._kwargs = (args, kwargs) if spec.items is not None else ((), {})

    def came(self) -> None:
        """An item came; the first one is timed, and what was looked up until then is its own."""
        if self._first is not None and self.whole is not None:
            self._first.hits, self._first.misses = self.whole.hits, self.whole.misses
            self._first.finish()
            self._first = None

    def end(self, error: bool = False, whole: bool = True) -> None:
        """It is over; `whole`: by itself, so that its items count."""
        if self.whole is not None:
            self.whole.finish(error)
            if whole and not error and self._spec.items is not None:
                count_items(self.whole, self._spec, self._spec.items, self._args, self._kwargs)


FIRST = Spec("first item")


def _first_base(spec: Spec) -> int:
    """The line keys of the region that holds the time to the first item."""
    return RECORDER.register(Spec(f"{spec.name}/first item", spec.mode, spec.runtime))


class Steps(Generator[Any, Any, Any]):
    """What is inside, as `yield from` and `await` drive it, piece by piece."""

    __slots__ = ("_inner", "_pieces")

    def __init__(self, inner: Any, pieces: Pieces) -> None:
        self._inner = inner
        self._pieces = pieces

    def __await__(self) -> Steps:
        return self

    def send(self, value: Any) -> Any:
        self._pieces.enter()
        try:
            return self._inner.send(value)
        finally:
            self._pieces.leave()

    def throw(self, *error: Any) -> Any:
        self._pieces.enter()
        try:
            return self._inner.throw(*error)
        finally:
            self._pieces.leave()

    def close(self) -> None:
        self._pieces.enter()
        try:
            self._inner.close()
        finally:
            self._pieces.leave()


class Items(Steps):
    """The pieces of a generator, each of which ends with an item."""

    __slots__ = ("_stream",)

    def __init__(self, inner: Generator[Any, Any, Any], pieces: Pieces, stream: Stream) -> None:
        super().__init__(inner, pieces)
        self._stream = stream

    def send(self, value: Any) -> Any:
        item = super().send(value)
        self._stream.came()
        return item

    def throw(self, *error: Any) -> Any:
        item = super().throw(*error)
        self._stream.came()
        return item


def awaited(inner: Any, pieces: Pieces | None) -> Any:
    """What to await in place of it. An awaitable that cannot be driven step by step is awaited as it is."""
    if pieces is None or not hasattr(inner, "__await__"):
        return inner
    steps = inner.__await__()
    return Steps(steps, pieces) if isinstance(steps, Generator) else Whole(steps)


class Whole:
    """An iterator that `__await__` has already handed out."""

    __slots__ = ("_steps",)

    def __init__(self, steps: Any) -> None:
        self._steps = steps

    def __await__(self) -> Any:
        return self._steps


def generator_wrapper(
    fn: Callable[..., Any], spec: Spec, base: int, skip: int = 0
) -> Callable[..., Any]:
    """A generator function: wall time to the first item, and in all."""
    first_base = _first_base(spec)

    def watched(*args: Any, **kwargs: Any) -> Generator[Any, Any, Any]:
        stream = Stream(spec, base, first_base, args[skip:], kwargs)
        inner = fn(*args, **kwargs)
        steps = inner if stream.whole is None else Items(inner, stream.whole, stream)
        del args, kwargs, inner
        try:
            result: Any = yield from steps
        except GeneratorExit:
            stream.end(whole=False)
            raise
        except BaseException:
            stream.end(error=True)
            raise
        stream.end()
        return result

    # What `types.coroutine` was put on can be awaited, as code of old libraries does; the sign of it is in the code.
    flags = getattr(getattr(fn, "__code__", None), "co_flags", 0)
    return types.coroutine(watched) if flags & inspect.CO_ITERABLE_COROUTINE else watched


def async_generator_wrapper(
    fn: Callable[..., Any], spec: Spec, base: int, skip: int = 0
) -> Callable[..., Any]:
    """An async generator function: wall time to the first item, and in all."""
    first_base = _first_base(spec)

    async def watched(*args: Any, **kwargs: Any) -> AsyncGenerator[Any, Any]:
        stream = Stream(spec, base, first_base, args[skip:], kwargs)
        inner = fn(*args, **kwargs)
        del args, kwargs
        step: Callable[[Any], Any] = inner.asend
        hands: list[Any] = [None]
        try:
            while True:
                hands.append(await awaited(step(hands.pop()), stream.whole))
                stream.came()
                try:
                    hands.append((yield hands.pop()))
                    step = inner.asend
                except GeneratorExit:
                    await awaited(inner.aclose(), stream.whole)
                    raise
                except BaseException as error:  # noqa: BLE001 - thrown in by the consumer: it belongs to the generator inside
                    hands.append(error)
                    step = inner.athrow
        except StopAsyncIteration:
            stream.end()
        except GeneratorExit:
            stream.end(whole=False)
            raise
        except BaseException:
            stream.end(error=True)
            raise

    return watched
