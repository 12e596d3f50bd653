"""In a region with very short calls only a sample is timed; every call and every error is
counted."""

from __future__ import annotations

import random
import threading

import compilewatch
import numpy as np
from compilewatch.instrument.hotpath import wrap_call
from compilewatch.recording.call_sampling import (
    _MAX_BATCHES,
    MAX_CALLS_PER_TIMED,
    NO_TOKENS,
    Sampling,
)
from compilewatch.recording.recorder import RECORDER
from compilewatch.recording.region_spec import RegionSpec
from compilewatch.recording.series_buffer import SeriesBuffer
from compilewatch.wire.messages import Region
from hypothesis import given
from hypothesis import strategies as st

from tests.agent.short_calls import BURST, Window, answer, sampled, second_passes


def test_every_call_is_counted_and_one_in_n_is_timed(window: Window) -> None:
    call = compilewatch.watch(answer, name="f")
    every = sampled(call).calls_per_timed
    assert [
        (region.calls, region.latency and region.latency.count) for region in window().regions
    ] == [(2 * BURST, 2 * BURST)]
    assert [call(i) for i in range(BURST)] == list(range(BURST))
    [region] = window().regions
    assert region.latency is not None and region.latency.problem() is None
    assert region.calls == BURST
    assert 0.7 < region.latency.count * every / BURST < 1.4


def test_calls_and_errors_are_exact_between_threads_and_windows(window: Window) -> None:
    def fails(i: int) -> None:
        if i % 7 == 0:
            raise ValueError(i)

    call = compilewatch.watch(fails, name="f")
    sampled(call, 1)
    reports = [window()]

    def work() -> None:
        for i in range(BURST):
            try:
                call(i)
            except ValueError:
                assert i % 7 == 0

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    while any(thread.is_alive() for thread in threads):
        second_passes()
        reports.append(window())
    reports.append(window())
    found = [region for report in reports for region in report.regions]
    assert (sum(region.calls for region in found), sum(region.errors for region in found)) == (
        6 * BURST,
        4 * len(range(0, BURST, 7)),
    )
    assert sum(region.latency.count for region in found if region.latency) < 5 * BURST


def test_calls_that_alternate_between_two_shapes_are_timed_alike(window: Window) -> None:
    prefill, decode = np.zeros(4096), np.zeros(16)
    call = compilewatch.watch(answer, name="f")
    sampled(call, prefill)
    window()
    for _ in range(4 * BURST):
        call(prefill)
        call(decode)
    found = {region.bucket: region for region in window().regions}
    assert set(found) == {"2^12", "2^4"}
    assert sum(region.calls for region in found.values()) == 8 * BURST
    for region in found.values():
        assert region.latency is not None and 0.4 < region.calls / (8 * BURST) < 0.6


def test_switching_the_counting_of_lookups_during_calls_changes_no_count(window: Window) -> None:
    call = compilewatch.watch(answer, name="f")
    sampling = sampled(call)
    window()
    sampling.issue_tokens(100)
    call(lambda: RECORDER.count_lookups(True))
    call(lambda: RECORDER.count_lookups(False))
    [region] = window().regions
    assert (region.calls, region.warmup, region.latency) == (2, None, None)


def test_a_callable_that_is_certain_to_run_eager_counts_every_call_as_eager(window: Window) -> None:
    call = wrap_call(
        answer, RECORDER.register(RegionSpec("f", runtime="torch.compile", eager_cause="disabled"))
    )
    sampled(call)
    window()
    for _ in range(BURST):
        call()
    [region] = window().regions
    assert (region.calls, region.sampled, region.eager_by) == (BURST, BURST, {"disabled": BURST})


def test_a_region_is_sampled_while_its_calls_are_short_and_many() -> None:
    sampling = Sampling()

    def second(calls: int, usual: float, quiet: bool = True) -> int:
        sampling.call_count, sampling.timed_count, sampling.timed_seconds = calls, 100, 100 * usual
        sampling.adapt_rate(1.0, quiet)
        return sampling.calls_per_timed

    assert [second(9_000, 110e-6), second(90_000, 10e-6)] == [225, MAX_CALLS_PER_TIMED]
    assert [second(500, 100e-6) for _ in range(3)] + [second(110, 100e-6) for _ in range(2)] == [
        128,
        32,
        12,
        3,
        2,
    ]
    assert [
        second(70, 100e-6),
        second(400, 2.5e-3),
        second(600, 1.6e-3),
        second(400, 2.5e-3),
        second(300, 3.1e-3),
    ] == [1, 1, 15, 10, 1]
    assert second(18_000, 55e-6, quiet=False) == 1
    sampling.call_count, sampling.timed_count, sampling.timed_seconds = 0, 0, 0.0
    assert not sampling.adapt_rate(1.0, True)


def test_the_jobs_own_random_numbers_are_not_changed(window: Window) -> None:
    call = compilewatch.watch(answer, name="f")
    sampled(call)
    random.seed(7)
    expected = [random.random() for _ in range(3)]
    random.seed(7)
    for _ in range(100):
        call()
    assert [random.random() for _ in range(3)] == expected


@given(st.lists(st.integers(0, 1 << 20), min_size=1, max_size=20), st.integers(0, 1 << 30))
def test_untimed_calls_are_distributed_to_the_last_one(timed: list[int], untimed: int) -> None:
    sampling, lines = (
        Sampling(),
        [SeriesBuffer(RegionSpec("f"), Region("f", 0, f"2^{i}")) for i in range(len(timed))],
    )
    for line, count in zip(lines, timed, strict=True):
        line.timed_count = count
    sampling.buffer = lines[0]
    sampling.issue_tokens(0)
    sampling._batches[0].remaining = untimed
    sampling.count_tokens()
    sampling.flush_counts(lines)
    given_out = [line.region.calls for line in lines]
    assert sum(given_out) == untimed and min(given_out) >= 0
    if sum(timed):
        assert all(
            abs(got - untimed * count / sum(timed)) <= 1
            for got, count in zip(given_out, timed, strict=True)
        )


def taken(sampling: Sampling, held: int = 0) -> int:
    sampling.count_tokens()
    return sampling.take_untimed(held)


def test_tokens_that_were_replaced_or_taken_back_are_counted_correctly() -> None:
    sampling, line = Sampling(), SeriesBuffer(RegionSpec("f"), Region("f", 0))
    sampling.buffer, sampling.calls_per_timed = line, 10
    sampling.issue_tokens(5)
    late = sampling.skip_tokens
    assert [next(late), next(late)] == [sampling, sampling]
    sampling.issue_tokens(3)
    assert taken(sampling) == 2
    next(late)  # by a thread that had read the tokens before they were replaced
    assert taken(sampling) == 1
    sampling.corrections.append(1)  # a call that was counted in the window before has failed
    assert taken(sampling) == 0
    assert len(list(sampling.skip_tokens)) == 3
    assert (taken(sampling, held=1), taken(sampling)) == (1, 1)  # one of the calls was in progress
    sampling.draw_skips()
    sampling.stop()
    assert (taken(sampling), sampling.skip_tokens) == (0, NO_TOKENS)


def test_a_call_that_began_before_a_fork_leaves_no_count_in_the_child() -> None:
    sampling = Sampling()
    sampling.buffer, sampling.calls_per_timed = SeriesBuffer(RegionSpec("f"), Region("f", 0)), 10
    sampling.corrections.append(1)
    assert (taken(sampling), taken(sampling)) == (0, 0)
    sampling.issue_tokens(5)
    assert len(list(sampling.skip_tokens)) == taken(sampling) == 5


def test_after_a_long_time_without_settlement_each_call_is_timed() -> None:
    sampling = Sampling()
    sampling.buffer, sampling.calls_per_timed = SeriesBuffer(RegionSpec("f"), Region("f", 0)), 2
    for _ in range(_MAX_BATCHES):
        sampling.draw_skips()
    last = sampling.skip_tokens
    sampling.draw_skips()
    assert sampling.skip_tokens is last
    sampling.count_tokens()
    sampling.draw_skips()
    assert sampling.skip_tokens is not last


def test_a_million_and_a_half_calls_between_two_settlements_are_still_sampled(
    window: Window,
) -> None:
    call = compilewatch.watch(answer, name="f")
    sampling = sampled(call)
    window()
    # The sampling rate of calls this fast, unless other processes take the processor.
    sampling.calls_per_timed = MAX_CALLS_PER_TIMED
    for _ in range(1_500_000):
        call()
    [region] = window().regions
    assert region.latency is not None
    assert (region.calls, region.latency.count < 1_500_000 / 10) == (1_500_000, True)


def test_a_region_that_rested_is_sampled_from_the_first_call_of_a_burst(
    window: Window,
) -> None:
    """Tokens of one answer come in bursts: otherwise the first second of each burst would be timed
    call by call."""
    call = compilewatch.watch(answer, name="f")
    every = sampled(call).calls_per_timed
    window()
    for _ in range(5):
        second_passes()
    for i in range(BURST):
        call(i)
    [region] = window().regions
    assert region.calls == BURST
    assert region.latency is not None and region.latency.count < 2 * BURST / every


def test_rare_calls_after_a_burst_are_soon_all_timed(window: Window) -> None:
    call = compilewatch.watch(answer, name="f")
    sampling = sampled(call)
    seconds = 0
    while sampling.calls_per_timed > 1:
        for _ in range(4):
            call(1)
        second_passes()
        seconds += 1
    assert seconds <= 9
    window()
    for _ in range(40):
        call(1)
    [region] = window().regions
    assert region.latency is not None and (region.calls, region.latency.count) == (40, 40)
