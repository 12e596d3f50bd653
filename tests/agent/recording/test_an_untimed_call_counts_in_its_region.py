"""A call that is only counted is detected if it holds another call, fails or is switched to another
mode."""

from __future__ import annotations

import time

import compilewatch
import pytest
from compilewatch.config import Config
from compilewatch.control.command_handler import CommandHandler
from compilewatch.instrument.hotpath import wrap_call
from compilewatch.instrument.kill_switch import EAGER, KILL_SWITCH, route_function
from compilewatch.recording.call_sampling import NO_TOKENS
from compilewatch.recording.recorder import RECORDER
from compilewatch.recording.region_spec import RegionSpec
from compilewatch.wire.command import Command
from compilewatch.wire.messages import Identity, Report

from tests.agent.short_calls import BURST, Window, answer, sampled, second_passes


def test_each_call_asks_the_switch_while_a_command_is_in_force(window: Window) -> None:
    def compiled() -> str:
        return "compiled"

    compiled._torchdynamo_orig_callable = lambda: "eager"  # type: ignore[attr-defined]
    KILL_SWITCH.is_allowed = True
    call = wrap_call(route_function(compiled), RECORDER.register(RegionSpec("f")))
    sampled(call).issue_tokens(100)
    commands = CommandHandler(
        Config(endpoint="file:/dev/null", model="m", version="1"),
        RECORDER,
        lambda: Identity(id="i", started=0.0, model="m", version="1"),
    )
    assert call() == "compiled"
    commands._hold(Command("a", "p", EAGER, 1, "m", "1", "e", time.time(), time.time() + 60))
    try:
        assert call() == "eager"
        for _ in range(2):
            for _ in range(BURST):
                call()
            second_passes()
        assert call() == "eager" and {
            line.sampling.calls_per_timed for line in RECORDER._all_buffers
        } == {1}
    finally:
        commands.close()
    assert call() == "compiled"
    sampled(call)


def test_a_region_that_holds_others_is_timed_in_full(window: Window) -> None:
    inner = compilewatch.watch(answer, name="inner")
    outer = compilewatch.watch(answer, name="outer")
    for _ in range(3):
        for _ in range(BURST):
            outer(inner)
        second_passes()
    [sampling] = {
        line.sampling for line in RECORDER._all_buffers if line.sampling.calls_per_timed > 1
    }
    assert (
        sampling.buffer is not None
        and sampling.buffer.region.name == "inner"
        and sampling.is_nested
    )
    window()
    for _ in range(BURST):
        outer(inner)
    with pytest.raises(ZeroDivisionError):
        outer(lambda: 1 // 0)
    counts = {
        (region.name, region.outermost): (region.calls, region.errors)
        for region in window().regions
    }
    assert counts == {("outer", True): (BURST + 1, 1), ("inner", False): (BURST, 0)}


def test_a_block_in_a_call_marks_the_region_as_holding_others(window: Window) -> None:
    def job() -> None:
        with compilewatch.region("block"):
            pass

    call = compilewatch.watch(job, name="f")
    for _ in range(3):
        for _ in range(BURST):
            call()
        second_passes()
    assert {
        line.region.name
        for line in RECORDER._all_buffers
        if line.sampling.skip_tokens is not NO_TOKENS
    } == set()


def test_a_region_called_both_inside_others_and_outside_is_timed_in_full(
    window: Window, monkeypatch: pytest.MonkeyPatch
) -> None:
    inner = compilewatch.watch(answer, name="inner")
    outer = compilewatch.watch(answer, name="outer")
    for _ in range(3):
        for _ in range(BURST):
            outer(inner)
            inner()
        second_passes()
    assert {line.sampling.calls_per_timed for line in RECORDER._all_buffers} == {1}
    window()
    # The calls outside count as more than a minute ago.
    monkeypatch.setattr("compilewatch.recording.sampler.UNIFORM_NESTING_SECONDS", -1.0)
    for _ in range(BURST):
        outer(inner)
    second_passes()
    found = {
        line.region.outermost: line.sampling.calls_per_timed
        for line in RECORDER._all_buffers
        if line.region.name == "inner"
    }
    assert found[True] == 1 < found[False]


def test_the_first_call_inside_a_counted_call_ends_the_counting(window: Window) -> None:
    inner = compilewatch.watch(answer, name="inner")
    outer = compilewatch.watch(answer, name="outer")
    sampled(outer).issue_tokens(BURST)
    window()
    for _ in range(BURST):
        outer(inner)
    counts = {(region.name, region.outermost): region.calls for region in window().regions}
    assert counts == {("outer", True): BURST, ("inner", True): 1, ("inner", False): BURST - 1}


def test_a_call_elsewhere_in_a_known_region_ends_the_counting_with_the_next_timed_call(
    window: Window,
) -> None:
    inner = compilewatch.watch(answer, name="inner")
    outer = compilewatch.watch(answer, name="outer")
    inner()
    sampled(outer).issue_tokens(100)
    window()
    for _ in range(BURST):
        outer(inner)
    counts = {(region.name, region.outermost): region.calls for region in window().regions}
    assert counts == {("outer", True): BURST, ("inner", True): 100, ("inner", False): BURST - 100}


def test_a_call_in_progress_is_counted_when_it_ends(window: Window) -> None:
    def fails() -> None:
        reports.append(window())
        raise ValueError("NCCL timed out")

    reports: list[Report] = []
    call = compilewatch.watch(answer, name="f")
    sampled(call).issue_tokens(100)
    window()
    with pytest.raises(ValueError, match="NCCL"):
        call(fails)
    reports.append(window())
    assert [(region.calls, region.errors) for report in reports for region in report.regions] == [
        (1, 1)
    ]


def test_a_counted_call_found_inside_another_ends_the_counting(window: Window) -> None:
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
        line.sampling.issue_tokens(BURST)
    outer(lambda: inner(second_passes))
    assert {
        line.region.name: (line.sampling.calls_per_timed, line.has_nested_calls)
        for line in RECORDER._all_buffers
    } == {
        "inner": (1, False),
        "outer": (1, True),
    }


def test_a_function_that_starts_to_call_itself_is_timed_from_the_next_timed_call_on(
    window: Window,
) -> None:
    def job(depth: int = 0) -> None:
        if depth:
            call(depth - 1)

    call = compilewatch.watch(job, name="f")
    sampled(call).issue_tokens(100)
    window()
    for _ in range(BURST):
        call(1)
    counts = {region.outermost: region.calls for region in window().regions}
    assert counts == {True: 100 + BURST - 50, False: BURST - 50}


def test_an_agent_that_is_off_counts_nothing(window: Window) -> None:
    call = compilewatch.watch(answer, name="f")
    sampling = sampled(call)
    sampling.issue_tokens(100)
    RECORDER.stop()
    assert call(lambda: 7) == 7 and sampling.skip_tokens is NO_TOKENS
