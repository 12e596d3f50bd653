"""A call that a watched coroutine or generator makes is nested in it, even after a suspension;
calls that others make on its thread are not."""

from __future__ import annotations

import asyncio
import threading
from collections import Counter
from collections.abc import AsyncIterator, Callable, Iterator

import compilewatch
from compilewatch.recording.recorder import RECORDER
from compilewatch.wire.messages import Report

Window = Callable[[], Report]
watched = compilewatch.watch


def counts(report: Report) -> dict[tuple[str, bool], int]:
    found: Counter[tuple[str, bool]] = Counter()
    for region in report.regions:
        found[region.name, region.outermost] += region.calls
    return dict(found)


@watched(name="model")
def model() -> int:
    return 1


@watched(name="endpoint")
async def endpoint() -> int:
    model()
    await asyncio.sleep(0)
    model()
    await asyncio.sleep(0)
    return model()


def test_a_call_after_a_suspension_is_nested_and_the_next_is_not(window: Window) -> None:
    async def serve() -> None:
        for _ in range(10):
            await endpoint()
            model()

    asyncio.run(serve())
    model()
    assert counts(window()) == {("endpoint", True): 10, ("model", False): 30, ("model", True): 11}


def test_overlapping_coroutines_are_not_nested_in_each_other(window: Window) -> None:
    async def unwatched() -> None:
        for _ in range(5):
            await asyncio.sleep(0)
            model()

    async def serve() -> None:
        await asyncio.gather(*(endpoint() for _ in range(10)), unwatched())

    asyncio.run(serve())
    assert counts(window()) == {("endpoint", True): 10, ("model", False): 30, ("model", True): 5}
    assert RECORDER.get_thread_state().buffer is None


def test_an_awaited_coroutine_and_its_blocks_are_nested(window: Window) -> None:
    @watched(name="outer")
    async def outer() -> None:
        await endpoint()
        with compilewatch.region("block"):
            await asyncio.sleep(0)
            model()

    asyncio.run(outer())
    assert counts(window()) == {
        ("outer", True): 1,
        ("endpoint", False): 1,
        ("block", False): 1,
        ("model", False): 4,
    }


def test_calls_of_a_generator_are_nested_and_those_between_its_items_are_not(
    window: Window,
) -> None:
    @watched(name="tokens")
    def tokens() -> Iterator[int]:
        yield model()
        yield model()

    @watched(name="stream")
    async def stream() -> AsyncIterator[int]:
        await asyncio.sleep(0)
        yield model()
        yield model()

    async def read() -> None:
        async for _ in stream():
            model()

    first, second = tokens(), tokens()
    for _ in range(2):
        next(first), next(second), model()
    assert list(first) == list(second) == []
    asyncio.run(read())
    found = counts(window())
    assert (found["model", False], found["model", True]) == (6, 4)
    assert found["tokens", True] == 2 and found["stream", True] == 1


def test_a_coroutine_that_fails_or_is_cancelled_leaves_nothing_open(window: Window) -> None:
    @watched(name="fails")
    async def fails() -> None:
        model()
        await asyncio.sleep(0)
        raise ValueError

    @watched(name="hangs")
    async def hangs() -> None:
        try:
            await asyncio.sleep(60)
        finally:
            model()

    async def serve() -> None:
        await asyncio.gather(fails(), fails(), return_exceptions=True)
        hanging = asyncio.create_task(hangs())
        await asyncio.sleep(0)
        hanging.cancel()
        await asyncio.gather(hanging, return_exceptions=True)
        model()

    asyncio.run(serve())
    assert counts(window()) == {
        ("fails", True): 2,
        ("hangs", True): 1,
        ("model", False): 3,
        ("model", True): 1,
    }


def test_each_thread_has_its_own_loop(window: Window) -> None:
    threads = [threading.Thread(target=lambda: asyncio.run(endpoint())) for _ in range(4)]
    for thread in threads:
        thread.start()
    model()
    for thread in threads:
        thread.join(60)
    assert counts(window()) == {("endpoint", True): 4, ("model", False): 12, ("model", True): 1}


def test_coroutines_in_tasks_of_a_call_are_nested_while_the_call_runs(window: Window) -> None:
    later: list[asyncio.Task[int]] = []

    async def waits() -> int:
        await asyncio.sleep(0.01)
        return await endpoint()

    @watched(name="outer")
    async def outer() -> None:
        await asyncio.gather(endpoint(), endpoint())
        await asyncio.wait_for(endpoint(), 60)
        later.append(asyncio.create_task(waits()))

    async def serve() -> None:
        await outer()
        await later.pop()

    asyncio.run(serve())
    assert counts(window()) == {
        ("outer", True): 1,
        ("endpoint", False): 3,
        ("endpoint", True): 1,
        ("model", False): 12,
    }
