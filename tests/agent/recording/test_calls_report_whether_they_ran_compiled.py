"""A call is compiled, partial, eager by a cause, unknown, or warm-up: compilations and guard
lookups decide."""

from __future__ import annotations

from collections.abc import Callable

import compilewatch
import pytest
from compilewatch.recording.recorder import RECORDER
from compilewatch.wire.messages import Compile, Region, Report

Window = Callable[[], Report]


def nothing(*args: object) -> None:
    """The job's function."""


def next_of(work: list[Callable[[], None]]) -> Callable[[], None]:
    """A function that behaves differently at each call."""

    def step() -> None:
        work.pop(0)()

    return step


def only(report: Report, name: str) -> Region:
    [region] = [region for region in report.regions if region.name == name]
    return region


def test_a_call_that_saw_a_compilation_is_warm_up(window: Window) -> None:
    def first() -> None:
        RECORDER.on_compile_start("f")
        RECORDER.on_compile_stop()

    work: list[Callable[[], None]] = [first, lambda: None, lambda: None]
    call = compilewatch.watch(next_of(work), name="f")
    for _ in range(3):
        call()
    region = only(window(), "f")
    assert region.warmup is not None and region.latency is not None
    assert (region.calls, region.warmup.count, region.latency.count) == (3, 1, 2)


def test_guard_lookups_decide_what_a_call_counts_as(window: Window) -> None:
    def lookups(hits: int, misses: int) -> None:
        RECORDER.get_thread_state().hits += hits
        RECORDER.get_thread_state().misses += misses

    call = compilewatch.watch(lookups, name="f")
    call(1, 0)  # before any call is counted
    RECORDER.count_lookups(True)
    for hits, misses in ((2, 0), (1, 0), (1, 1), (0, 0), (0, 1)):
        call(hits, misses)
    RECORDER.count_lookups(False)
    region = only(window(), "f")
    assert (region.calls, region.sampled, region.compiled, region.partial, region.unknown) == (
        6,
        5,
        2,
        1,
        2,
    )


def test_a_frame_in_eager_fallback_gives_the_cause_of_its_eager_calls(window: Window) -> None:
    work: list[Callable[[], None]] = [
        lambda: RECORDER.record_eager_fallback("f (a.py:1)", "limit"),
        lambda: None,
    ]
    inner = compilewatch.watch(next_of(work), name="inner")
    outer = compilewatch.watch(inner, name="outer")
    other = compilewatch.watch(nothing, name="other")
    RECORDER.count_lookups(True)
    outer()
    outer()
    other()
    RECORDER.clear_eager_fallbacks()
    work.append(lambda: None)
    outer()
    RECORDER.count_lookups(False)
    report = window()
    assert only(report, "inner").eager_by == {"limit": 2} and only(report, "inner").unknown == 1
    assert only(report, "outer").eager_by == {"limit": 2}
    assert only(report, "other").eager_by == {}
    assert [fact.data["cause"] for fact in report.facts if fact.kind == "latched_eager"] == [
        "limit"
    ]


def test_a_stance_of_the_process_applies_to_every_region_that_compiles(window: Window) -> None:
    work: list[Callable[[], None]] = [
        lambda: RECORDER.record_compile(Compile(1.0, "0/0", "first", "ok")),
        lambda: None,
        lambda: None,
    ]
    compiles = compilewatch.watch(next_of(work), name="compiles")
    told = compilewatch.watch(nothing, name="told", runtime="torch.compile")
    never = compilewatch.watch(nothing, name="never")
    compiles()
    RECORDER.count_lookups(True)
    RECORDER.set_process_eager("stance")
    for call in (compiles, told, never):
        call()
    RECORDER.set_process_eager("")
    for call in (compiles, told, never):
        call()
    RECORDER.count_lookups(False)
    report = window()
    assert [
        (only(report, name).eager_by, only(report, name).unknown) for name in ("compiles", "told")
    ] == [({"stance": 1}, 1)] * 2
    assert only(report, "never").eager_by == {}


def test_an_override_comes_before_the_known_state_of_a_frame(window: Window) -> None:
    call = compilewatch.watch(
        lambda cause=None: RECORDER.record_eager_fallback("f", "limit"),
        name="f",
        runtime="torch.compile",
    )
    RECORDER.count_lookups(True)
    call()
    for overrides in (False, True):
        RECORDER.set_process_eager("stance", overrides)
        call()
    RECORDER.count_lookups(False)
    assert only(window(), "f").eager_by == {"limit": 2, "stance": 1}


def test_an_unknown_cause_is_refused(window: Window) -> None:
    with pytest.raises(ValueError, match="unknown cause 'bored'"):
        RECORDER.record_eager_fallback("f", "bored")
    with pytest.raises(ValueError, match="unknown cause 'bored'"):
        RECORDER.set_process_eager("bored")


def test_a_compilation_inside_a_served_region_stalls_a_request(window: Window) -> None:
    work: list[Callable[[], None]] = [lambda: None]
    call = compilewatch.watch(next_of(work), name="f")

    def compiles() -> None:
        RECORDER.record_compile(Compile(1.0, "0/0", "first", "ok"))

    work.insert(0, compiles)
    call()
    call()
    RECORDER.collect()
    work.append(compiles)
    call()
    RECORDER.record_compile(Compile(1.0, "0/2", "first", "ok"))
    assert [compile.in_request for compile in window().compiles] == [False, True, False]


def test_after_ready_every_watched_call_that_compiles_is_a_request(window: Window) -> None:
    call = compilewatch.watch(
        lambda: RECORDER.record_compile(Compile(1.0, "0/0", "first", "ok")), name="f"
    )
    call()
    compilewatch.ready()
    call()
    RECORDER.record_compile(Compile(1.0, "0/1", "first", "ok"))
    assert [compile.in_request for compile in window().compiles] == [False, True, False]


def test_without_watched_calls_every_compilation_after_ready_is_in_a_request(
    window: Window,
) -> None:
    RECORDER.record_compile(Compile(1.0, "0/0", "first", "ok"))
    compilewatch.ready()
    RECORDER.record_compile(Compile(1.0, "0/1", "first", "ok"))
    assert [compile.in_request for compile in window().compiles] == [False, True]
