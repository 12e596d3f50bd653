"""Calls that are suspended on their way: coroutines and generators; others run on their thread meanwhile, so nesting is not theirs."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable, Generator
from typing import Any

from compilewatch.hotpath import Running, begin, items_of
from compilewatch.lines import Spec
from compilewatch.recorder import RECORDER


def coroutine_wrapper(fn: Callable[..., Any], spec: Spec, base: int, skip: int = 0) -> Callable[..., Any]:
    """An async function: wall time from its first step to its end."""

    async def watched(*args: Any, **kwargs: Any) -> Any:
        running = begin(spec, base, args[skip:], kwargs, stays=False)
        if running is None:
            return await fn(*args, **kwargs)
        try:
            result = await fn(*args, **kwargs)
        except BaseException:
            running.finish(failed=True)
            raise
        running.finish(items=items_of(spec, args[skip:], kwargs))
        return result

    return watched


def _first_base(spec: Spec) -> int:
    """The line keys of the region that holds the time to the first item."""
    return RECORDER.register(Spec(f"{spec.name}/first item", spec.mode, spec.runtime))


def generator_wrapper(fn: Callable[..., Any], spec: Spec, base: int, skip: int = 0) -> Callable[..., Any]:
    """A generator function: wall time to the first item, and in all."""
    first_base = _first_base(spec)

    def watched(*args: Any, **kwargs: Any) -> Generator[Any, Any, Any]:
        running = begin(spec, base, args[skip:], kwargs, stays=False)
        if running is None:
            return (yield from fn(*args, **kwargs))
        first: Running | None = Running(first_base, stays=False)
        inner = fn(*args, **kwargs)
        step, sent = inner.send, None
        try:
            while True:
                item = step(sent)
                if first is not None:
                    first.finish()
                    first = None
                try:
                    step, sent = inner.send, (yield item)
                except GeneratorExit:
                    inner.close()
                    raise
                except BaseException as error:  # noqa: BLE001 - thrown in by the consumer: it belongs to the generator inside
                    step, sent = inner.throw, error
        except StopIteration as end:
            running.finish(items=items_of(spec, args[skip:], kwargs))
            return end.value
        except GeneratorExit:
            running.finish()
            raise
        except BaseException:
            running.finish(failed=True)
            raise

    return watched


def async_generator_wrapper(fn: Callable[..., Any], spec: Spec, base: int, skip: int = 0) -> Callable[..., Any]:
    """An async generator function: wall time to the first item, and in all."""
    first_base = _first_base(spec)

    async def watched(*args: Any, **kwargs: Any) -> AsyncGenerator[Any, Any]:
        running = begin(spec, base, args[skip:], kwargs, stays=False)
        first = None if running is None else Running(first_base, stays=False)
        inner = fn(*args, **kwargs)
        step, sent = inner.asend, None
        try:
            while True:
                item = await step(sent)
                if first is not None:
                    first.finish()
                    first = None
                try:
                    step, sent = inner.asend, (yield item)
                except GeneratorExit:
                    await inner.aclose()
                    raise
                except BaseException as error:  # noqa: BLE001 - thrown in by the consumer: it belongs to the generator inside
                    step, sent = inner.athrow, error
        except (StopAsyncIteration, GeneratorExit) as end:
            if running is not None:
                running.finish(items=items_of(spec, args[skip:], kwargs) if isinstance(end, StopAsyncIteration) else None)
            if isinstance(end, GeneratorExit):
                raise
        except BaseException:
            if running is not None:
                running.finish(failed=True)
            raise

    return watched
