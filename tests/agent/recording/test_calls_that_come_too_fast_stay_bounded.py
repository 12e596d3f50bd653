"""If calls arrive faster than the agent can bin them, no caller is delayed for long, memory is
bounded, and every call counts."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable

import compilewatch
import pytest
from compilewatch.recording.recorder import RECORDER
from compilewatch.recording.series_buffer import (
    CHUNK_CALLS,
    LONG_CALLS,
    MAX_CALLER_CHUNKS,
    MAX_CALLS,
    SeriesBuffer,
    take_snapshot,
)
from compilewatch.wire.messages import Report

Window = Callable[[], Report]


@pytest.fixture
def line(window: Window) -> SeriesBuffer:
    """The buffer of a region that was called once."""
    compilewatch.watch(lambda: None, name="fast")()
    window()
    [found] = [line for line in RECORDER._all_buffers if line.region.name == "fast"]
    return found


def looked(line: SeriesBuffer) -> None:
    RECORDER.shorten_if_long(line, time.perf_counter())


def test_one_caller_bins_some_of_the_excess_and_continues(line: SeriesBuffer) -> None:
    line.plain += [1e-6] * MAX_CALLS
    looked(line)
    assert line.pending_calls() == MAX_CALLS - MAX_CALLER_CHUNKS * CHUNK_CALLS
    del line.plain[LONG_CALLS:]
    looked(line)
    assert line.pending_calls() == LONG_CALLS


def test_calls_that_cannot_be_binned_are_counted_without_their_time(
    line: SeriesBuffer, window: Window
) -> None:
    line.plain += [1e-6] * (4 * MAX_CALLS) + [1e-3] * LONG_CALLS
    looked(line)
    assert line.pending_calls() < MAX_CALLS
    [region] = window().regions
    assert region.calls == 4 * MAX_CALLS + LONG_CALLS
    assert region.latency is not None
    assert region.latency.count == MAX_CALLS - LONG_CALLS  # the newest calls, whose time is known
    assert region.latency.quantile(0.95) == pytest.approx(1e-3, rel=0.02)


def test_values_that_arrive_during_a_snapshot_are_kept(line: SeriesBuffer) -> None:
    def came() -> None:
        for number in range(200_000):
            values.append(number)

    values: list[int] = list(range(-5_000, 0))
    taken: list[int] = []
    adding = [threading.Thread(target=came) for _ in range(2)]
    for thread in adding:
        thread.start()
    while any(thread.is_alive() for thread in adding) or values:
        taken += take_snapshot(values, CHUNK_CALLS)
    assert sorted(taken) == sorted([*range(-5_000, 0), *range(200_000), *range(200_000)])


def test_a_window_of_eight_threads_without_a_pause_has_every_call(window: Window) -> None:
    call = compilewatch.watch(lambda: None, name="hammered")

    def hammer() -> None:
        for _ in range(100_000):
            call()

    threads = [threading.Thread(target=hammer) for _ in range(8)]
    for thread in threads:
        thread.start()
    most = 0
    while any(thread.is_alive() for thread in threads):
        most = max(most, sum(line.pending_calls() for line in RECORDER._all_buffers))
        time.sleep(0.01)
    assert sum(region.calls for region in window().regions) == 800_000
    assert most < 800_000
