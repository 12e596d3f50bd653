"""A watched function behaves as the function: signature, attributes, binding, kind, and every value
sent, thrown or closed into it."""

from __future__ import annotations

import asyncio
import contextvars
import functools
import inspect
import types
import weakref
from collections.abc import AsyncIterator, Callable, Generator, Iterator
from typing import Any

import compilewatch
import pytest
from compilewatch.recording.recorder import RECORDER
from compilewatch.wire.messages import Report

Window = Callable[[], Report]


def calls(report: Report) -> dict[str, int]:
    return {region.name: region.calls for region in report.regions}


def test_a_watched_function_looks_like_the_function() -> None:
    def scale(x: float, *rest: int, by: float = 2.0, **more: str) -> float:
        """Scaled."""
        return x * by

    scale.owner = "me"  # type: ignore[attr-defined]
    watched: Any = compilewatch.watch(scale)
    for name in ("__name__", "__qualname__", "__module__", "__doc__", "__annotations__", "owner"):
        assert getattr(watched, name) == getattr(scale, name)
    assert inspect.signature(watched) == inspect.signature(scale)
    assert inspect.unwrap(watched) is scale and watched.__wrapped__ is scale
    assert (
        weakref.ref(watched)() is watched and watched == watched and hash(watched) == hash(watched)
    )
    watched.owner = "you"
    assert scale.owner == "me"  # type: ignore[attr-defined]


def test_wrong_arguments_are_refused_as_without_the_agent(window: Window) -> None:
    def one(x: int) -> int:
        return x

    with pytest.raises(TypeError, match=r"one\(\) missing 1 required positional argument: 'x'"):
        compilewatch.watch(one)()  # type: ignore[call-arg]


class Service:
    """The job's own class."""

    base = 3

    @compilewatch.watch(name="method")
    def method(self, x: int) -> int:
        return self.base + x

    @classmethod
    @compilewatch.watch(name="class below")
    def below(cls, x: int) -> int:
        return cls.base + x

    @compilewatch.watch(name="class above")
    @classmethod
    def above(cls, x: int) -> int:
        return cls.base + x

    @compilewatch.watch(name="static")
    @staticmethod
    def static(x: int) -> int:
        return x

    @property
    @compilewatch.watch(name="property")
    def size(self) -> int:
        return self.base


class Other(Service):
    """A subclass of the class."""

    base = 10

    def method(self, x: int) -> int:
        return super().method(x) + 100


def test_methods_of_every_kind(window: Window) -> None:
    assert [Service().method(1), Other().method(1), Service.method(Service(), 1)] == [4, 111, 4]
    assert [Service.below(1), Other.below(1), Other().below(1)] == [4, 11, 11]
    assert [Service.above(1), Other.above(1), Other().above(1)] == [4, 11, 11]
    assert [Service.static(1), Service().static(2), Service().size, Other().size] == [1, 2, 3, 10]
    assert calls(window()) == {
        "method": 3,
        "class below": 3,
        "class above": 3,
        "static": 2,
        "property": 2,
    }


def test_a_bound_method_stays_bound(window: Window) -> None:
    service = Other()
    watched = compilewatch.watch(service.method, name="bound")
    assert (
        inspect.ismethod(watched) and watched.__self__ is service and watched.__name__ == "method"
    )
    assert inspect.signature(watched) == inspect.signature(service.method)
    assert (watched(1), calls(window())["bound"]) == (111, 1)
    appended: list[int] = []
    compilewatch.watch(appended.append, name="append")(1)
    assert appended == [1] and calls(window())["append"] == 1


def test_a_partial_stays_a_partial(window: Window) -> None:
    def power(x: int, by: int) -> int:
        return x**by

    square = functools.partial(power, by=2)
    watched = compilewatch.watch(square)
    assert isinstance(watched, functools.partial) and (watched.args, watched.keywords) == (
        (),
        {"by": 2},
    )
    assert inspect.signature(watched) == inspect.signature(square)
    assert [watched(3), watched(3, by=3), functools.partial(compilewatch.watch(power), 2)(3)] == [
        9,
        27,
        8,
    ]
    assert calls(window()) == {"power": 3}


def test_kinds_are_distinguished_as_without_the_agent() -> None:
    async def coroutine() -> None: ...

    async def stream() -> AsyncIterator[int]:
        yield 1

    def items() -> Iterator[int]:
        yield 1

    kinds = (
        inspect.iscoroutinefunction,
        inspect.isasyncgenfunction,
        inspect.isgeneratorfunction,
        inspect.isfunction,
    )
    for fn in (coroutine, stream, items, test_kinds_are_distinguished_as_without_the_agent):
        assert [kind(compilewatch.watch(fn)) for kind in kinds] == [kind(fn) for kind in kinds]


def test_an_awaitable_generator_stays_awaitable(window: Window) -> None:
    @compilewatch.watch(name="awaited")
    @types.coroutine
    def step(item: int) -> Generator[None, None, int]:
        yield
        return item + 1

    async def waiting() -> int:
        return await step(1)

    assert asyncio.run(waiting()) == 2 and inspect.isawaitable(step(1))
    assert calls(window())["awaited"] == 1


def talking() -> Iterator[Any]:
    """A generator that reports the events it receives."""
    got = yield "first"
    while got != "end":
        try:
            got = yield got
        except LookupError as error:
            got = f"caught {error}"
    return "returned"


def test_a_generator_behaves_as_without_the_agent(window: Window) -> None:
    def observed(make: Callable[[], Any]) -> list[Any]:
        one = make()
        received = [
            isinstance(one, types.GeneratorType),
            next(one),
            one.send("a"),
            one.throw(LookupError("x")),
            next(one),
        ]
        try:
            one.send("end")
        except StopIteration as end:
            received.append(end.value)
        closed = make()
        next(closed)
        closed.close()
        return [*received, list(closed), (lambda: (yield from make()))().send(None)]

    assert observed(compilewatch.watch(talking)) == observed(talking)


def test_a_generator_that_ignores_close_raises_as_without_the_agent(window: Window) -> None:
    @compilewatch.watch
    def stubborn() -> Iterator[int]:
        try:
            yield 1
        except GeneratorExit:
            yield 2

    one: Any = stubborn()
    next(one)
    with pytest.raises(RuntimeError, match="generator ignored GeneratorExit"):
        one.close()
    with pytest.raises(RuntimeError, match="generator raised StopIteration"):
        compilewatch.watch(talking)().throw(StopIteration("mine"))


async def talking_async() -> AsyncIterator[Any]:
    """The async version, with its own end."""
    got = yield "first"
    for _ in range(4):
        try:
            got = yield got
        except LookupError as error:
            got = f"caught {error}"


def test_an_async_generator_behaves_as_without_the_agent(window: Window) -> None:
    async def observed(make: Callable[[], Any]) -> list[Any]:
        one = make()
        received = [
            await anext(one),
            await one.asend("a"),
            await one.athrow(LookupError("x")),
            [item async for item in one],
        ]
        closed = make()
        await anext(closed)
        await closed.aclose()
        return [*received, [item async for item in closed]]

    assert asyncio.run(observed(compilewatch.watch(talking_async))) == asyncio.run(
        observed(talking_async)
    )
    assert calls(window()) == {"talking_async": 2, "talking_async/first item": 2}


def test_contexts_and_tasks_are_those_of_the_caller(window: Window) -> None:
    who: contextvars.ContextVar[str] = contextvars.ContextVar("who")

    @compilewatch.watch
    async def answer(name: str) -> str:
        who.set(name)
        await asyncio.sleep(0.001)
        return who.get() + (asyncio.current_task() or asyncio.Task).get_name()  # type: ignore[call-arg]

    @compilewatch.watch
    def setting() -> None:
        who.set("set inside")

    async def many() -> list[str]:
        return await asyncio.gather(
            *(asyncio.create_task(answer(name), name=name) for name in "abc")
        )

    assert asyncio.run(many()) == ["aa", "bb", "cc"]
    setting()
    assert who.get() == "set inside"
    assert calls(window()) == {"answer": 3, "setting": 1}


def test_a_cancelled_task_is_cancelled(window: Window) -> None:
    @compilewatch.watch
    async def forever() -> None:
        await asyncio.sleep(60)

    async def cancel() -> bool:
        task = asyncio.create_task(forever())
        await asyncio.sleep(0.01)
        task.cancel()
        await asyncio.wait([task])
        return task.cancelled()

    assert asyncio.run(cancel())
    [region] = window().regions
    assert (region.calls, region.errors) == (1, 1)


def test_deep_recursion_ends_as_without_the_agent(window: Window) -> None:
    @compilewatch.watch(name="deep")
    def deep(n: int) -> int:
        return deep(n + 1)

    before = RECORDER.internal_error_count
    for _ in range(30):
        with pytest.raises(RecursionError):
            deep(0)
    assert RECORDER.buffers is not None, RECORDER.last_error
    assert RECORDER.internal_error_count <= before + 30
    nested = {region.outermost: region.calls for region in window().regions}
    assert nested[True] == 30 and nested[False] > 1000
