"""Each call of a watched callable counts once, in its class; results and exceptions are the job's
own."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator, Callable, Generator, Iterator
from typing import Any

import compilewatch
import pytest
from compilewatch.wire.messages import Region, Report

Window = Callable[[], Report]


def nothing(*args: object) -> None:
    """The job's function."""


def only(report: Report, name: str) -> Region:
    [region] = [region for region in report.regions if region.name == name]
    return region


def test_a_function_counts_each_call_and_answers_as_before(window: Window) -> None:
    @compilewatch.watch
    def double(x: int, *, plus: int = 0) -> int:
        """Twice."""
        return 2 * x + plus

    assert [double(i) for i in range(5)] + [double(5, plus=1)] == [0, 2, 4, 6, 8, 11]
    assert (double.__name__, double.__doc__) == ("double", "Twice.")
    region = only(window(), "double")
    assert (region.calls, region.errors, region.sampled, region.outermost) == (6, 0, 0, True)
    assert (
        region.latency is not None
        and region.latency.count == 6
        and region.latency.problem() is None
    )


def test_a_new_window_starts_from_zero(window: Window) -> None:
    call = compilewatch.watch(nothing, name="again")
    call()
    assert only(window(), "again").calls == 1
    assert window().regions == []


def test_an_exception_is_counted_and_raised_unchanged(window: Window) -> None:
    fault = KeyError("mine")

    @compilewatch.watch
    def fails() -> None:
        raise fault

    with pytest.raises(KeyError) as caught:
        fails()
    assert caught.value is fault
    region = only(window(), "fails")
    assert (region.calls, region.errors, region.latency) == (1, 1, None)


def test_a_method_is_watched_in_its_class(window: Window) -> None:
    class Service:
        def __init__(self) -> None:
            self.base = 3

        @compilewatch.watch(name="predict")
        def predict(self, x: int) -> int:
            return self.base + x

    assert Service().predict(4) == 7
    assert only(window(), "predict").calls == 1


def test_a_callable_object_is_not_changed(window: Window) -> None:
    class Adder:
        def __init__(self, by: int) -> None:
            self.by = by

        def __call__(self, x: int) -> int:
            return x + self.by

    adder = Adder(2)
    watched = compilewatch.watch(adder)
    watched.by = 5
    assert (watched(1), adder.by, isinstance(watched, Adder)) == (6, 5, True)
    assert only(window(), "Adder").calls == 1


def test_a_coroutine_function_is_timed_to_its_end(window: Window) -> None:
    @compilewatch.watch
    async def answer(x: int) -> int:
        await asyncio.sleep(0.01)
        if x < 0:
            raise ValueError(x)
        return x

    async def many() -> list[Any]:
        return await asyncio.gather(*(answer(i) for i in (1, 2, -1)), return_exceptions=True)

    found = asyncio.run(many())
    assert found[:2] == [1, 2] and isinstance(found[2], ValueError)
    region = only(window(), "answer")
    assert (region.calls, region.errors) == (3, 1)
    assert region.latency is not None and region.latency.min >= 0.009


def test_a_generator_is_timed_to_its_first_item_and_to_its_end(window: Window) -> None:
    @compilewatch.watch
    def tokens(n: int) -> Generator[Any, Any, str]:
        got = yield 0
        for i in range(1, n):
            got = yield (i, got)
        return "end"

    def consume() -> Iterator[Any]:
        result = yield from tokens(3)
        yield result

    assert list(consume()) == [0, (1, None), (2, None), "end"]
    talk = tokens(3)
    assert (next(talk), talk.send("a")) == (0, (1, "a"))
    talk.close()
    report = window()
    assert (only(report, "tokens").calls, only(report, "tokens/first item").calls) == (2, 2)


def test_exceptions_thrown_into_a_generator_reach_it(window: Window) -> None:
    @compilewatch.watch
    def careful() -> Generator[str, None, None]:
        try:
            yield "a"
        except LookupError:
            yield "caught"

    talk = careful()
    assert (next(talk), talk.throw(LookupError())) == ("a", "caught")
    with pytest.raises(OSError):
        talk.throw(OSError())
    assert only(window(), "careful").errors == 1


def test_an_async_generator_is_timed_to_its_first_item_and_to_its_end(window: Window) -> None:
    @compilewatch.watch
    async def stream() -> AsyncIterator[int]:
        for i in range(3):
            yield i

    async def consume() -> list[int]:
        return [i async for i in stream()]

    assert asyncio.run(consume()) == [0, 1, 2]
    report = window()
    assert (only(report, "stream").calls, only(report, "stream/first item").calls) == (1, 1)


def test_a_block_is_a_region_with_items(window: Window) -> None:
    for _ in range(3):
        with compilewatch.region("train_step", items=32):
            pass
    with pytest.raises(ZeroDivisionError), compilewatch.region("train_step", items=32):
        raise ZeroDivisionError
    region = only(window(), "train_step")
    assert (region.calls, region.errors, region.items) == (4, 1, 96.0)


def test_items_and_buckets_can_be_reported(window: Window) -> None:
    call = compilewatch.watch(nothing, name="sized", items=len, bucket=lambda x: f"len {len(x)}")
    call("ab")
    call("ab")
    call("abc")
    found = {region.bucket: (region.calls, region.items) for region in window().regions}
    assert found == {"len 2": (2, 4.0), "len 3": (1, 3.0)}


def test_a_call_inside_another_is_not_outermost(window: Window) -> None:
    inner = compilewatch.watch(nothing, name="inner")
    outer = compilewatch.watch(inner, name="outer")
    outer()
    inner()
    found = {(region.name, region.outermost): region.calls for region in window().regions}
    assert found == {("outer", True): 1, ("inner", False): 1, ("inner", True): 1}


def test_no_call_is_lost_or_doubled_between_threads_and_windows(window: Window) -> None:
    call = compilewatch.watch(nothing, name="f")
    threads = [threading.Thread(target=lambda: [call() for _ in range(5000)]) for _ in range(6)]
    for thread in threads:
        thread.start()
    counts = []
    while any(thread.is_alive() for thread in threads):
        counts += [region.calls for region in window().regions]
    counts += [region.calls for region in window().regions]
    assert sum(counts) == 30_000


def test_sixteen_buckets_are_kept_and_the_rest_is_other(window: Window) -> None:
    call = compilewatch.watch(nothing, name="f", bucket=lambda x: x)
    for i in range(40):
        call(i)
    buckets = {region.bucket: region.calls for region in window().regions}
    assert len(buckets) == 17
    assert buckets["other"] == 24


def test_regions_beyond_the_limit_count_as_other(window: Window) -> None:
    for i in range(400):
        compilewatch.watch(nothing, name=f"f{i}")()
    report = window()
    assert len(report.regions) == 257
    assert only(report, "other").calls == 144
