"""Objects that pass through a watched call live no longer than without the agent: arguments,
results, items, exceptions; no call leaks memory."""

from __future__ import annotations

import asyncio
import gc
import sys
import weakref
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import suppress
from typing import Any

import compilewatch
import pytest
from compilewatch.instrument import object_proxy
from compilewatch.wire.messages import Report

Window = Callable[[], Report]


class Large:
    """An object whose end is observed."""


@pytest.fixture(autouse=True)
def without_gc() -> Iterator[None]:
    gc.collect()
    gc.disable()
    yield
    gc.enable()


def fresh(alive: list[weakref.ref[Large]]) -> Large:
    large = Large()
    alive.append(weakref.ref(large))
    return large


def living(alive: list[weakref.ref[Large]]) -> int:
    return sum(one() is not None for one in alive)


def through(x: object, **more: object) -> object:
    """The job's function."""
    return x


WRAPPED: dict[str, Callable[[Any], Any]] = {
    "shortest path": lambda fn: compilewatch.watch(fn),
    "with items and bucket": lambda fn: compilewatch.watch(
        fn, items=lambda *args, **kwargs: 1, bucket=lambda *args, **kwargs: "b"
    ),
}


@pytest.mark.parametrize("wrap", WRAPPED.values(), ids=WRAPPED.keys())
def test_arguments_and_results_are_not_kept_alive(
    window: Window, wrap: Callable[[Any], Any]
) -> None:
    alive: list[weakref.ref[Large]] = []
    call = wrap(through)
    for _ in range(3):
        assert isinstance(call(fresh(alive), key=fresh(alive)), Large)
    assert living(alive) == 0


@pytest.mark.parametrize("wrap", WRAPPED.values(), ids=WRAPPED.keys())
def test_exceptions_with_their_frames_are_not_kept_alive(
    window: Window, wrap: Callable[[Any], Any]
) -> None:
    alive: list[weakref.ref[Large]] = []

    def fails(x: object) -> None:
        held = fresh(alive)
        raise ValueError(held, x)

    call = wrap(fails)
    for _ in range(3):
        with suppress(ValueError):
            call(fresh(alive))
    assert living(alive) == 0


def test_exceptions_of_the_jobs_own_callables_are_not_kept_alive(window: Window) -> None:
    alive: list[weakref.ref[Large]] = []

    def fails(x: object) -> float:
        raise ValueError(fresh(alive), x)

    call = compilewatch.watch(through, items=fails, bucket=fails)
    call(fresh(alive))
    with compilewatch.region("block", items=Large()):  # type: ignore[arg-type]
        pass
    assert living(alive) == 0


def test_a_suspended_generator_holds_what_it_would_hold_alone(window: Window) -> None:
    alive: list[weakref.ref[Large]] = []

    @compilewatch.watch
    def items(x: object) -> Iterator[Large]:
        del x
        for _ in range(3):
            with suppress(LookupError):
                yield fresh(alive)

    one: Any = items(fresh(alive))
    next(one)
    one.send(fresh(alive))
    one.throw(LookupError(fresh(alive)))
    assert living(alive) == 0


def test_a_suspended_async_generator_holds_what_it_would_hold_alone(window: Window) -> None:
    alive: list[weakref.ref[Large]] = []

    @compilewatch.watch
    async def items(x: object) -> AsyncIterator[Large]:
        del x
        for _ in range(3):
            with suppress(LookupError):
                yield fresh(alive)

    async def consume() -> int:
        one: Any = items(fresh(alive))
        await anext(one)
        await one.asend(fresh(alive))
        await one.athrow(LookupError(fresh(alive)))
        return living(alive)

    assert asyncio.run(consume()) == 0


def test_a_waiting_coroutine_holds_what_it_would_hold_alone(window: Window) -> None:
    alive: list[weakref.ref[Large]] = []

    @compilewatch.watch
    async def wait(x: object) -> int:
        del x
        await asyncio.sleep(0)
        return living(alive)

    async def ask() -> int:
        return await wait(fresh(alive))

    assert asyncio.run(ask()) == 0


def test_a_watched_object_is_freed_with_its_last_user(window: Window) -> None:
    class Model:
        def __call__(self) -> None: ...

    model = Model()
    model.large = Large()  # type: ignore[attr-defined]
    alive = [weakref.ref(model.large)]  # type: ignore[attr-defined]
    watched, known = compilewatch.watch(model), len(object_proxy.PROXY_TARGETS)
    watched()
    del model, watched
    assert (living(alive), len(object_proxy.PROXY_TARGETS)) == (0, known - 1)


def test_a_million_calls_leave_nothing_behind(window: Window) -> None:
    call = compilewatch.watch(through, name="million")
    for _ in range(1000):
        call(1)
    window()
    before = sys.getallocatedblocks()
    for _ in range(1_000_000):
        call(1)
    report = window()
    assert [region.calls for region in report.regions] == [1_000_000]
    assert sys.getallocatedblocks() - before < 2_000
