"""Warm-up of a region ends once: for all its shape buckets and threads, also without evidence that
it runs compiled, and across a fork."""

from __future__ import annotations

import json
import os
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any

import compilewatch
import pytest
from compilewatch.agent import AGENT
from compilewatch.recording.aggregate import merge_regions
from compilewatch.recording.recorder import RECORDER
from compilewatch.wire.codec import decode, encode
from compilewatch.wire.messages import Compile, Identity, Region, Report, Request
from compilewatch.wire.otlp import metrics_of
from compilewatch.wire.sketch import Sketch

from tests.agent.short_calls import answer, held_up, sampled

Window = Callable[[], Report]


def compiles() -> None:
    RECORDER.on_compile_start("f")
    RECORDER.on_compile_stop()


def hits() -> None:
    RECORDER.get_thread_state().hits += 1


def misses() -> None:
    RECORDER.get_thread_state().misses += 1


def nothing() -> None:
    """Torch makes no lookup."""


@pytest.fixture
def looked_up(window: Window) -> Iterator[None]:
    RECORDER.count_lookups(True)
    yield
    RECORDER.count_lookups(False)


def kinds(report: Report, name: str = "f") -> dict[str, int]:
    found: Counter[str] = Counter()
    for region in (region for region in report.regions if region.name == name):
        assert region.stalled is not None
        for kind in ("latency", "warmup", "stalled"):
            sketch = getattr(region, kind)
            found[kind] += sketch.count if sketch else 0
        found["calls"] += region.calls
    return dict(+found)


def test_a_call_that_met_no_compiled_code_ends_no_warm_up_of_compiled_code(
    window: Window, looked_up: None
) -> None:
    call = compilewatch.watch(answer, name="f", runtime="torch.compile")
    for work in (nothing, compiles, nothing, misses, compiles, hits, nothing, compiles):
        call(work)
    assert kinds(window()) == {"calls": 8, "warmup": 2, "latency": 5, "stalled": 1}


def test_a_region_that_compiles_at_each_call_is_stalled_after_fifty(
    window: Window, looked_up: None
) -> None:
    call = compilewatch.watch(answer, name="f", runtime="torch.compile")
    for _ in range(60):
        call(compiles)
    assert kinds(window()) == {"calls": 60, "warmup": 50, "stalled": 10}


def test_a_region_served_before_it_was_seen_to_compile_has_no_warm_up(
    window: Window, looked_up: None
) -> None:
    call = compilewatch.watch(answer, name="f", runtime="torch.compile")
    for work in (hits, compiles):
        call(work)
    assert kinds(window()) == {"calls": 2, "latency": 1, "stalled": 1}


@pytest.mark.parametrize("runtime", ["jax", "aotinductor", None])
def test_without_lookups_the_first_quiet_call_after_a_compiling_call_ends_warm_up(
    window: Window, runtime: str | None
) -> None:
    call = compilewatch.watch(answer, name="f", runtime=runtime)
    for work in (nothing, nothing, compiles, compiles, nothing, compiles):
        call(work)
    assert kinds(window()) == {"calls": 6, "latency": 3, "warmup": 2, "stalled": 1}


def test_warm_up_ends_for_other_buckets_and_threads_and_in_a_later_window(
    window: Window, looked_up: None
) -> None:
    call = compilewatch.watch(lambda work, size: work(), name="f", bucket=lambda work, size: size)
    call(compiles, "small")
    call(hits, "small")
    window()
    call(compiles, "large")
    thread = threading.Thread(target=call, args=(compiles, "larger"))
    thread.start()
    thread.join(60)
    assert kinds(window()) == {"calls": 2, "stalled": 2}


def test_a_call_that_began_before_the_end_of_warm_up_belongs_to_warm_up(
    window: Window, looked_up: None
) -> None:
    begun, over = threading.Event(), threading.Event()

    def long() -> None:
        begun.set()
        over.wait(60)
        compiles()

    call = compilewatch.watch(answer, name="f")
    thread = threading.Thread(target=call, args=(long,))
    thread.start()
    begun.wait(60)
    for work in (compiles, hits):
        call(work)
    over.set()
    thread.join(60)
    assert kinds(window()) == {"calls": 3, "latency": 1, "warmup": 2}


def test_a_counted_call_is_stalled_if_it_compiles_after_warm_up(
    window: Window,
) -> None:
    call, around = compilewatch.watch(answer, name="f"), compilewatch.watch(answer, name="around")
    for work in (compiles, nothing):
        call(work)
        around(work)
    window()
    sampling = sampled(call)
    sampling.issue_tokens(100)
    window()
    end_call = held_up(call)
    call(lambda: (RECORDER.on_compile_start("f"), time.sleep(0.02), RECORDER.on_compile_stop()))
    assert kinds(window()) == {"calls": 1, "stalled": 1}  # the other call may still fail
    end_call()
    report = window()
    assert kinds(report) == {"calls": 1, "stalled": 1}
    assert [region.stalled.min >= 0.02 for region in report.regions if region.stalled] == [True]


def test_a_counted_call_that_waited_and_fails_windows_later_is_an_error_alone(
    window: Window,
) -> None:
    call = compilewatch.watch(answer, name="f")
    for work in (compiles, nothing):
        call(work)
    sampled(call).issue_tokens(100)
    window()

    def fails() -> None:
        compiles()
        assert kinds(window()) == {}
        raise ValueError

    with pytest.raises(ValueError):
        call(fails)
    [region] = window().regions
    assert (region.calls, region.errors, kinds(Report((1, 1), (0.0, 1.0), [region]))) == (
        1,
        1,
        {"calls": 1},
    )


@pytest.mark.parametrize("seconds", [-3.0, float("nan"), 1e12])
def test_a_record_with_absurd_seconds_reaches_no_sketch(window: Window, seconds: float) -> None:
    call = compilewatch.watch(answer, name="f")
    for work in (compiles, nothing):
        call(work)
    sampled(call).issue_tokens(100)
    window()
    call(
        lambda: RECORDER.record_compile(
            Compile(1.0, "0/0", "recompile", "ok", seconds={"total": seconds})
        )
    )
    [region] = window().regions
    assert (
        region.stalled is not None
        and region.stalled.count == 1
        and 0.0 <= region.stalled.max < 60.0
    )


def test_a_negative_duration_counts_and_is_in_no_sketch(window: Window) -> None:
    compilewatch.watch(answer, name="f")()
    [line] = RECORDER._all_buffers
    line.stalled += [-1.0, 2.0, float("nan")]
    [region] = window().regions
    assert region.stalled is not None and (
        region.calls,
        region.stalled.count,
        region.stalled.sum,
    ) == (4, 1, 2.0)


def in_a_child(work: Callable[[], Any]) -> Any:
    """The result of the function in a forked child."""
    read, write = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            AGENT._after_fork()
            os.write(write, json.dumps(work()).encode())
        finally:
            os._exit(0)
    os.close(write)
    with os.fdopen(read) as answers:
        counts = answers.read()
    os.waitpid(child, 0)
    return json.loads(counts)


def test_a_forked_child_warms_up_only_regions_that_had_not_warmed_up(
    window: Window, looked_up: None
) -> None:
    def job() -> list[dict[str, int]]:
        for call in (warm, cold):
            for work in (compiles, hits, compiles):
                call(work)
        report = window()
        return [kinds(report, "warm"), kinds(report, "cold")]

    warm, cold = (compilewatch.watch(answer, name=name) for name in ("warm", "cold"))
    for work in (compiles, hits):
        warm(work)
    cold(compiles)
    counts = in_a_child(job)
    assert counts == [
        {"calls": 3, "latency": 1, "stalled": 2},
        {"calls": 3, "latency": 1, "warmup": 1, "stalled": 1},
    ]


def test_an_empty_sketch_reports_no_stalled_calls_and_is_sent_as_such() -> None:
    none = Region("f", 1, stalled=Sketch())
    assert decode(Region, encode(none)).stalled == Sketch()
    assert (
        "stalled" not in encode(Region("f", 1))
        and decode(Region, {"name": "f", "calls": 1}).stalled is None
    )


@pytest.mark.parametrize("seconds", [[], [2.0]])
def test_merged_windows_keep_their_stalled_calls(seconds: list[float]) -> None:
    [merged] = merge_regions(
        [
            Region("f", 1, stalled=Sketch()),
            Region("f", 1, stalled=Sketch.of(seconds)),
            Region("f", 1),
        ]
    )
    assert (merged.calls, merged.stalled) == (3, Sketch.of(seconds))


def test_an_exported_window_keeps_an_empty_sketch() -> None:
    window = Report((1, 1), (0.0, 1.0), [Region("f", 1, stalled=Sketch())])
    sent = metrics_of(Request(1, 0.0, Identity("a" * 26, 0.0, "m", "1"), [window]))
    [scope] = sent["resourceMetrics"][0]["scopeMetrics"]
    [stalled] = [
        metric for metric in scope["metrics"] if metric["name"] == "compilewatch.stalled.duration"
    ]
    [point] = stalled["exponentialHistogram"]["dataPoints"]
    assert (point["count"], point["positive"]["bucketCounts"]) == ("0", [])
