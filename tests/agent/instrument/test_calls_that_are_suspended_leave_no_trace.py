"""Blocks and calls that overlap on one thread, or one block entered twice, count separately, and
nothing after them is nested in them."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Iterator

import compilewatch
from compilewatch.wire.messages import Report

Window = Callable[[], Report]


def counted(report: Report) -> dict[tuple[str, bool], int]:
    return {(region.name, region.outermost): region.calls for region in report.regions}


def test_blocks_of_coroutines_overlap(window: Window) -> None:
    async def request(seconds: float) -> None:
        with compilewatch.region("request"):
            await asyncio.sleep(seconds)

    async def both() -> None:
        await asyncio.gather(request(0.001), request(0.02))

    asyncio.run(both())
    with compilewatch.region("later"):
        pass
    assert counted(window()) == {("request", True): 2, ("later", True): 1}


def test_a_block_of_a_generator_stays_open_between_its_items(window: Window) -> None:
    def items() -> Iterator[int]:
        with compilewatch.region("items"):
            yield 1
            yield 2

    first, second = items(), items()
    assert [next(first), next(second), *first, *second] == [1, 1, 2, 2]
    with compilewatch.region("later"):
        pass
    assert counted(window()) == {("items", True): 2, ("later", True): 1}


def test_one_block_may_be_entered_again_while_it_is_open(window: Window) -> None:
    step = compilewatch.region("step")
    meet = threading.Barrier(3)

    def twice() -> None:
        with step:
            meet.wait()
            with step:
                meet.wait()
            meet.wait()

    threads = [threading.Thread(target=twice) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    with step:
        pass
    assert counted(window()) == {("step", True): 4, ("step", False): 3}


def test_an_object_with_a_coroutine_to_call_is_timed_to_its_end(window: Window) -> None:
    class Model:
        async def __call__(self, n: int) -> int:
            await asyncio.sleep(0.02)
            return n

    assert asyncio.run(compilewatch.watch(Model(), items=lambda n: n)(3)) == 3
    [region] = window().regions
    assert region.latency is not None and region.latency.max >= 0.02
    assert region.items == 3.0
