"""A counted call that compiles or waits for a compilation is reported, and the report does not keep
the arguments of the call alive."""

from __future__ import annotations

import gc
import threading
import time
import weakref

import compilewatch
import pytest
from compilewatch.recording.recorder import RECORDER
from compilewatch.recording.series_buffer import SeriesBuffer
from compilewatch.wire.messages import Compile

from tests.agent.short_calls import BURST, Window, answer, held_up, sampled, second_passes


def test_a_call_that_compiles_is_never_missed(window: Window) -> None:
    def compiles() -> None:
        RECORDER.on_compile_start("f")
        time.sleep(0.05)
        RECORDER.on_compile_stop()

    call = compilewatch.watch(answer, name="f")
    sampling = sampled(call)
    window()
    sampling.issue_tokens(100)
    call(compiles)
    for _ in range(50):
        call()
    [region] = window().regions
    assert region.warmup is not None and region.latency is not None
    assert (region.calls, region.warmup.count) == (51, 1) and region.warmup.min >= 0.05
    # From the compilation on each call is timed, until a whole second was quiet.
    assert region.latency.count == 50


def test_a_call_that_waits_for_a_compilation_elsewhere_is_warm_up(window: Window) -> None:
    call = compilewatch.watch(answer, name="f")
    sampling = sampled(call)
    window()
    sampling.issue_tokens(100)
    end_call = held_up(call)
    RECORDER.on_compile_start("g")
    time.sleep(0.05)
    RECORDER.on_compile_stop()
    end_call()
    [region] = window().regions
    assert (
        region.warmup is not None
        and (region.calls, region.warmup.count) == (1, 1)
        and region.warmup.min >= 0.05
    )


def test_a_compilation_known_only_from_its_record_has_the_length_in_the_record(
    window: Window,
) -> None:
    def compiles() -> None:
        RECORDER.record_compile(Compile(1.0, "0/0", "recompile", "ok", seconds={"total": 3.0}))

    call = compilewatch.watch(answer, name="f")
    sampling = sampled(call)
    window()
    sampling.issue_tokens(100)
    call(compiles)
    report = window()
    [region] = report.regions
    assert region.warmup is not None and region.warmup.min >= 3.0
    assert [compile.in_request for compile in report.compiles] == [True]


def test_a_call_that_compiles_and_then_fails_is_counted_once(window: Window) -> None:
    def fails() -> None:
        RECORDER.on_compile_start("f")
        RECORDER.on_compile_stop()
        raise ValueError("no such shape")

    call = compilewatch.watch(answer, name="f")
    sampled(call).issue_tokens(100)
    window()
    with pytest.raises(ValueError, match="no such shape"):
        call(fails)
    for _ in range(50):
        call()
    assert [(region.calls, region.errors, region.warmup) for region in window().regions] == [
        (51, 1, None)
    ]


def test_a_compilation_inside_a_counted_call_belongs_to_that_call(window: Window) -> None:
    def in_a_block() -> None:
        with compilewatch.region("block"):
            found.append(RECORDER.find_innermost())

    call = compilewatch.watch(answer, name="f")
    sampled(call).issue_tokens(100)
    found: list[SeriesBuffer | None] = []
    call(lambda: found.append(RECORDER.find_innermost()))
    call(in_a_block)
    assert [line and line.region.name for line in found] == ["f", "block"]
    assert RECORDER.find_innermost() is None
    assert {line.region.name: line.has_nested_calls for line in RECORDER._all_buffers} == {
        "f": True,
        "block": False,
    }


def test_arguments_of_a_call_are_not_kept_alive_by_a_compilation(window: Window) -> None:
    class Batch:
        """Takes the place of a tensor."""

    def compiles(batch: Batch) -> None:
        RECORDER.on_compile_start("f")
        RECORDER.on_compile_stop()

    def job() -> weakref.ref[Batch]:
        batch = Batch()
        call(batch, compiles)
        return weakref.ref(batch)

    call = compilewatch.watch(lambda x=None, work=None: work(x) if work else x, name="f")
    sampled(call).issue_tokens(100)
    gc.disable()
    try:
        assert job()() is None
    finally:
        gc.enable()


def test_a_call_that_ends_before_a_compilation_elsewhere_did_not_wait_for_it(
    window: Window,
) -> None:
    begun, compiling = threading.Event(), threading.Event()

    def works() -> None:
        begun.set()
        compiling.wait(60)

    call = compilewatch.watch(answer, name="f")
    sampled(call).issue_tokens(100)
    window()
    other = threading.Thread(target=call, args=(works,))
    other.start()
    begun.wait(60)
    RECORDER.on_compile_start("g")
    compiling.set()
    other.join()
    assert [(region.calls, region.warmup) for region in window().regions] == [(1, None)]
    RECORDER.on_compile_stop()
    assert window().regions == []


def test_the_call_that_compiled_is_reported_although_the_outer_call_fails(window: Window) -> None:
    def compiles() -> None:
        RECORDER.on_compile_start("f")
        RECORDER.on_compile_stop()

    def fails() -> None:
        inner(compiles)
        raise ValueError("no such key")

    inner, outer = (
        compilewatch.watch(answer, name="inner"),
        compilewatch.watch(answer, name="outer"),
    )
    for _ in range(2):
        for _ in range(BURST):
            inner()
            outer()
        second_passes()
    for line in RECORDER._all_buffers:
        line.sampling.issue_tokens(100)
    window()
    with pytest.raises(ValueError, match="no such key"):
        outer(fails)
    found = {
        region.name: (region.calls, region.errors, region.warmup and region.warmup.count)
        for region in window().regions
    }
    assert found == {"inner": (1, 0, 1), "outer": (1, 1, None)}
