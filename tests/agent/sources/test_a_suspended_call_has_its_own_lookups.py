"""Coroutines and generators count as compiled or eager by the lookups of their own steps, for any
other work on their thread in between."""

from __future__ import annotations

import asyncio
import threading
import types
from collections.abc import AsyncIterator, Callable, Iterator
from typing import Any

import compilewatch
import pytest
import torch
from compilewatch.instrument.async_calls import wrap_awaitable
from compilewatch.instrument.segments import Segments
from compilewatch.recording.recorder import RECORDER
from compilewatch.recording.region_spec import RegionSpec
from compilewatch.wire.messages import Region

from tests.agent.sources.conftest import Seen

HIT, MISS = 3, 9
"""A size that the model is compiled for, and one that it is not."""


def doubled(x: torch.Tensor) -> torch.Tensor:
    return x * 2


@pytest.fixture
def model() -> Callable[[int], None]:
    """Compiled for the sizes 3 and 4; every other size runs eager, because the limit is reached."""
    compiled = torch.compile(doubled, backend="eager", dynamic=False)
    with torch._dynamo.config.patch(recompile_limit=2):
        for size in (3, 4, 5):
            compiled(torch.ones(size))

    def call(size: int) -> None:
        with torch._dynamo.config.patch(recompile_limit=2):
            compiled(torch.ones(size))

    return call


def answers(seen: Seen) -> dict[str, dict[str, int]]:
    """By region: its calls by kind; `calls` is the number of sampled calls."""
    told: dict[str, dict[str, int]] = {}
    for region in seen.look().regions:
        kinds = {
            "compiled": region.compiled,
            "partial": region.partial,
            "unknown": region.unknown,
            "calls": region.sampled,
            **region.eager_by,
        }
        mine = told.setdefault(region.name, {})
        for kind, count in {**kinds, **region.eager_by}.items():
            if count:
                mine[kind] = mine.get(kind, 0) + count
    return told


def test_coroutines_that_overlap_count_their_own_lookups(
    watching: Seen, model: Callable[[int], None]
) -> None:
    @compilewatch.watch(name="hits")
    async def hits() -> None:
        for _ in range(3):
            await asyncio.sleep(0)
            model(HIT)

    @compilewatch.watch(name="misses")
    async def misses() -> None:
        for _ in range(3):
            model(MISS)
            await asyncio.sleep(0)

    @compilewatch.watch(name="both")
    async def both() -> None:
        model(HIT)
        await asyncio.sleep(0)
        model(MISS)

    @compilewatch.watch(name="neither")
    async def neither() -> None:
        await asyncio.sleep(0)

    async def all_at_once() -> None:
        await asyncio.gather(*(one() for _ in range(20) for one in (hits, misses, both, neither)))

    asyncio.run(all_at_once())
    assert answers(watching) == {
        "hits": {"compiled": 20, "calls": 20},
        "misses": {"unknown": 20, "calls": 20},
        "both": {"partial": 20, "calls": 20},
        "neither": {"unknown": 20, "calls": 20},
    }


def test_generators_that_are_advanced_in_turn_count_their_own_lookups(
    watching: Seen, model: Callable[[int], None]
) -> None:
    @compilewatch.watch(name="tokens")
    def tokens(sizes: list[int]) -> Iterator[int]:
        for size in sizes:
            model(size)
            yield size

    compiled, mixed, eager = tokens([HIT, HIT]), tokens([HIT, MISS]), tokens([MISS, MISS])
    for _ in range(2):
        for one in (compiled, mixed, eager):
            next(one)
    for one in (compiled, mixed, eager):
        assert list(one) == []
    told = answers(watching)
    assert told["tokens"] == {"compiled": 1, "partial": 1, "unknown": 1, "calls": 3}
    assert told["tokens/first item"] == {"compiled": 2, "unknown": 1, "calls": 3}


def test_async_generators_count_their_own_lookups(
    watching: Seen, model: Callable[[int], None]
) -> None:
    @compilewatch.watch(name="stream")
    async def stream(size: int) -> AsyncIterator[int]:
        for _ in range(3):
            await asyncio.sleep(0)
            model(size)
            yield size

    async def read(size: int) -> list[int]:
        return [item async for item in stream(size)]

    async def all_at_once() -> None:
        await asyncio.gather(*(read(size) for size in (HIT, MISS) * 10))

    asyncio.run(all_at_once())
    assert answers(watching)["stream"] == {"compiled": 10, "unknown": 10, "calls": 20}


def test_a_generator_that_changes_its_thread_keeps_its_lookups(
    watching: Seen, model: Callable[[int], None]
) -> None:
    @compilewatch.watch(name="tokens")
    def tokens() -> Iterator[int]:
        for size in (HIT, MISS, HIT):
            model(size)
            yield size

    steps = tokens()
    for _ in range(3):
        thread = threading.Thread(target=lambda: next(steps))
        thread.start()
        thread.join(60)
    assert list(steps) == []
    assert answers(watching)["tokens"] == {"partial": 1, "calls": 1}


def test_awaited_and_iterated_work_is_part_of_the_call(
    watching: Seen, model: Callable[[int], None]
) -> None:
    @compilewatch.watch(name="inner")
    async def inner() -> None:
        model(MISS)

    @compilewatch.watch(name="items")
    def items() -> Iterator[None]:
        model(HIT)
        yield

    @compilewatch.watch(name="outer")
    async def outer() -> None:
        await inner()
        list(items())

    asyncio.run(outer())
    told = answers(watching)
    assert (told["inner"], told["items"], told["outer"]) == (
        {"unknown": 1, "calls": 1},
        {"compiled": 1, "calls": 1},
        {"partial": 1, "calls": 1},
    )


def test_a_frame_that_falls_back_inside_a_call_is_its_cause(watching: Seen) -> None:
    compiled = torch.compile(doubled, backend="eager", dynamic=False)

    @compilewatch.watch(name="handler")
    async def handler(size: int) -> None:
        await asyncio.sleep(0)
        compiled(torch.ones(size))

    async def one_after_another(*sizes: int) -> None:
        with torch._dynamo.config.patch(recompile_limit=2):
            for size in sizes:
                await handler(size)

    asyncio.run(one_after_another(3, 4, 5))
    watching.look()
    asyncio.run(one_after_another(6, 7, 3))
    assert answers(watching)["handler"] == {"limit": 2, "compiled": 1, "calls": 3}


def test_a_compilation_inside_a_served_call_stalls_a_request(watching: Seen) -> None:
    compiled = torch.compile(doubled, backend="eager", dynamic=False)

    @compilewatch.watch
    async def handler(size: int) -> None:
        await asyncio.sleep(0)
        compiled(torch.ones(size))

    asyncio.run(handler(3))
    asyncio.run(handler(3))
    assert [one.in_request for one in watching.look().compiles] == [False]
    asyncio.run(handler(4))
    assert [one.in_request for one in watching.look().compiles] == [True]


def test_work_between_the_steps_of_a_call_is_not_its_own(watching: Seen) -> None:
    @compilewatch.watch(name="nothing of torch")
    def tokens() -> Iterator[int]:
        yield 1
        yield 2

    list(tokens())
    watching.look()
    compiled, steps = torch.compile(doubled, backend="eager", dynamic=False), tokens()
    with torch._dynamo.config.patch(recompile_limit=2):
        for size in (3, 4, 5):
            next(steps, None)
            compiled(torch.ones(size))
    assert [one.in_request for one in watching.look().compiles] == [False] * 3
    list(tokens())
    assert answers(watching)["nothing of torch"] == {}


def test_a_block_inside_a_call_is_unknown_and_the_table_gives_the_reason(
    watching: Seen, model: Callable[[int], None]
) -> None:
    source = next(source for source in watching.sources if source.name == "compiled_calls")
    assert source.poll(RECORDER) == ("yes", "")

    async def request() -> None:
        with compilewatch.region("request"):
            await asyncio.sleep(0)
            model(HIT)

    asyncio.run(request())
    regions: list[Region] = watching.look().regions
    assert [
        (region.name, region.compiled, region.unknown, region.sampled) for region in regions
    ] == [("request", 0, 1, 1)]
    grade, why = source.poll(RECORDER) or ("", "")
    assert grade == "partly"
    assert why.startswith("blocks inside coroutines and generators")


def test_an_awaitable_that_cannot_be_driven_is_awaited_unchanged(watching: Seen) -> None:
    class Plain:
        def __await__(self) -> Any:
            return iter([])

    class Late:
        def __await__(self) -> Any:
            return asyncio.sleep(0, "late").__await__()

    @types.coroutine
    def old() -> Any:
        yield
        return "old"

    async def all_of_them() -> list[Any]:
        pieces = Segments(RECORDER.register(RegionSpec("any")))
        return [
            await wrap_awaitable(one, pieces)
            for one in (Plain(), Late(), old(), asyncio.sleep(0, "plain"))
        ]

    assert asyncio.run(all_of_them()) == [None, "late", "old", "plain"]


def test_a_function_of_the_same_name_that_runs_eager_does_not_count_for_it(
    watching: Seen, model: Callable[[int], None]
) -> None:
    compilewatch.watch(lambda: None, name="shared")()
    assert answers(watching)["shared"] == {}

    @compilewatch.watch(name="shared")
    async def shared() -> None:
        model(MISS)

    asyncio.run(shared())
    assert answers(watching)["shared"] == {"unknown": 1, "calls": 1}
