"""Samples of GPU time keep a distance in time, for any host time of a call; a full pool skips and
counts, and only a CUDA error ends sampling. A fake CUDA controls the progress of the GPU;
`tests/gpu/test_sources_on_cuda.py` samples a real GPU."""

from __future__ import annotations

import itertools
import threading
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import pytest
from compilewatch.recording.region_spec import RegionSpec
from compilewatch.recording.series_buffer import SeriesBuffer
from compilewatch.sources.cuda import gpu_time
from compilewatch.sources.cuda.gpu_time import COST_SHARE, MAX_PAIRS, MIN_GAP_S, EventProbe, GpuTime
from compilewatch.wire.messages import Region

EVENT_S, DEAR_EVENT_S = 8e-6, 90e-6
"""Thread time to record one event, in seconds: usually, and in a decode step on an H100."""


class Host:
    """The host's clock, which moves only when a test moves it."""

    def __init__(self) -> None:
        self.now = 1000.0
        self.others = 0.0
        """Seconds in which other threads held the interpreter."""

    def perf_counter(self) -> float:
        return self.now

    def thread_time(self) -> float:
        return self.now - self.others


class Gpu:
    """A fake CUDA: the GPU has finished the events recorded before `reached`."""

    def __init__(self, host: Host) -> None:
        self.reached, self.error, self.event_s, self.others_s = float("inf"), "", EVENT_S, 0.0
        self.spins: Iterator[float] = itertools.repeat(0.0)
        gpu = self

        class Event:
            def __init__(self, enable_timing: bool) -> None:
                assert enable_timing

            def record(self) -> None:
                if gpu.error:
                    raise RuntimeError(gpu.error)
                host.now += gpu.event_s + gpu.others_s + next(gpu.spins)
                host.others += gpu.others_s
                self.at = host.now

            def query(self) -> bool:
                return self.at <= gpu.reached

            def elapsed_time(self, end: Any) -> float:
                return float(end.at - self.at) * 1e3

        self.Event = Event

    def is_current_stream_capturing(self) -> bool:
        return False

    def is_initialized(self) -> bool:
        return True


@pytest.fixture
def host(monkeypatch: pytest.MonkeyPatch) -> Host:
    stopped = Host()
    monkeypatch.setattr(gpu_time, "time", stopped)
    return stopped


@pytest.fixture
def gpu(host: Host) -> Gpu:
    return Gpu(host)


@pytest.fixture
def probe(gpu: Gpu) -> EventProbe:
    return EventProbe(gpu, SeriesBuffer(RegionSpec("step"), Region("step", 0)))


def calls(
    probe: EventProbe, host: Host, seconds: float, every: float, dispatch: float
) -> Iterator[int]:
    """The seconds in which a sample was taken, for calls that come every `every` seconds and occupy
    the host for `dispatch` seconds."""
    begins, second = host.now, 0
    while host.now - begins < seconds:
        call = host.now
        pair = probe.begin()
        host.now += dispatch
        if pair is not None:
            probe.end(pair)
            yield int(host.now - begins)
        host.now = max(host.now, call + every)
        if int(host.now - begins) != second:
            second = int(host.now - begins)
            probe.read()


@pytest.mark.parametrize(
    ("every", "dispatch"),
    [(0.010, 0.0002), (0.010, 0.010), (0.001, 0.0002), (0.0001, 0.00005), (0.050, 0.0002)],
)
def test_each_second_has_its_samples_within_the_bound(
    probe: EventProbe, host: Host, every: float, dispatch: float
) -> None:
    seconds = list(calls(probe, host, 30.0, every, dispatch))
    of_each = [seconds.count(second) for second in range(2, 30)]
    assert min(of_each) >= 4, "spread over each window of 10 s"
    assert min(sum(of_each[place : place + 10]) for place in range(len(of_each) - 9)) >= 60
    assert 2 * EVENT_S * len(seconds) / 30.0 <= 1.5 * COST_SHARE
    assert max(of_each) <= 2 / MIN_GAP_S
    assert len(probe.line.gpu) >= len(seconds) - max(of_each)


def test_expensive_events_leave_60_samples_in_a_window(
    probe: EventProbe, host: Host, gpu: Gpu
) -> None:
    gpu.event_s = DEAR_EVENT_S
    seconds = list(calls(probe, host, 60.0, 0.0016, 0.0012))
    windows = [sum(second // 10 == window for second in seconds) for window in range(1, 6)]
    assert min(windows) >= 60
    assert 2 * DEAR_EVENT_S * sum(windows) / 50.0 <= 1.5 * COST_SHARE


@pytest.mark.parametrize(
    ("calls_in_burst", "every"), [(8, 0.400), (8, 0.080), (24, 1.2), (64, 0.640)]
)
def test_calls_that_come_in_bursts_have_their_samples(
    probe: EventProbe, host: Host, gpu: Gpu, calls_in_burst: int, every: float
) -> None:
    gpu.event_s = DEAR_EVENT_S
    begins, sampled, second = host.now, [0] * 7, 0
    while host.now - begins < 70.0:
        burst = host.now
        for _ in range(calls_in_burst):
            pair = probe.begin()
            host.now += 0.0001
            if pair is not None:
                probe.end(pair)
                sampled[min(6, int((host.now - begins) // 10))] += 1
        host.now = burst + every
        if int(host.now - begins) != second:
            second = int(host.now - begins)
            probe.read()
    assert min(sampled[1:6]) >= 60
    assert 2 * DEAR_EVENT_S * sum(sampled[1:6]) / 50.0 <= 1.5 * COST_SHARE


def test_a_burst_after_rare_calls_fills_no_pool(probe: EventProbe, host: Host, gpu: Gpu) -> None:
    gpu.event_s = DEAR_EVENT_S
    list(calls(probe, host, 10.0, 0.4, 0.0002))
    sampled = len(list(calls(probe, host, 0.9, 0.0005, 0.0002)))
    assert (probe.skipped, 1 <= sampled <= 14) == (0, True)


def test_time_of_other_threads_is_no_cost_of_events(
    probe: EventProbe, host: Host, gpu: Gpu
) -> None:
    gpu.others_s = 0.002
    seconds = list(calls(probe, host, 30.0, 0.050, 0.0002))
    assert min(seconds.count(second) for second in range(2, 30)) >= 4


@pytest.mark.parametrize(("spin", "free"), [(0.0008, 3), (0.0016, 3), (0.0016, 8)])
def test_waiting_for_the_driver_is_no_cost_of_events(
    probe: EventProbe, host: Host, gpu: Gpu, spin: float, free: int
) -> None:
    gpu.event_s = DEAR_EVENT_S
    gpu.spins = itertools.cycle([spin / 2] * 2 * (free - 1) + [0.0, 0.0])
    seconds = list(calls(probe, host, 60.0, 0.036, 0.0002))
    assert min(sum(second // 10 == window for second in seconds) for window in range(1, 6)) >= 60


def test_calls_that_become_rarer_are_sampled_from_the_next_second_on(
    probe: EventProbe, host: Host
) -> None:
    list(calls(probe, host, 10.0, 0.0001, 0.00005))
    seconds = list(calls(probe, host, 10.0, 0.2, 0.0002))
    assert all(seconds.count(second) >= 4 for second in range(2, 10)), (
        "nearly each of five calls a second"
    )


def test_a_full_pool_skips_counts_and_continues(probe: EventProbe, host: Host, gpu: Gpu) -> None:
    gpu.reached = 0.0
    list(calls(probe, host, 25.0, 0.020, 0.0002))
    assert (probe.line.gpu, probe.error) == ([], "")
    assert probe.skipped > MAX_PAIRS
    gpu.reached = float("inf")
    probe.read()
    assert len(probe.line.gpu) == MAX_PAIRS
    skipped = probe.skipped
    seconds = list(calls(probe, host, 10.0, 0.020, 0.0002))
    assert min(seconds.count(second) for second in range(1, 10)) >= 4
    assert probe.skipped == skipped


def test_threads_that_share_a_pool_never_break_it(probe: EventProbe, gpu: Gpu) -> None:
    gpu.reached = 0.0
    probe._rate = 1.0

    def call() -> None:
        for _ in range(2000):
            pair = probe.begin()
            if pair is not None:
                probe.end(pair)
            probe._countdown = probe._samples = 0

    threads = [threading.Thread(target=call) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert probe.error == ""
    assert probe.skipped > 0


def test_only_a_cuda_error_ends_sampling_and_the_capability_names_it(
    host: Host, gpu: Gpu, monkeypatch: pytest.MonkeyPatch
) -> None:
    source, wanted = GpuTime(), []
    recorder: Any = SimpleNamespace(set_probe=wanted.append)
    monkeypatch.setitem(gpu_time.sys.modules, "torch.cuda", gpu)
    monkeypatch.setattr(GpuTime, "_relax", lambda self: None)
    source.install(recorder)
    assert source.poll(recorder) == ("yes", "")
    probes = [
        wanted[0](SeriesBuffer(RegionSpec(name), Region(name, 0))) for name in ("encode", "decode")
    ]
    gpu.reached = 0.0
    list(calls(probes[0], host, 10.0, 0.020, 0.0002))
    answer, why = source.poll(recorder) or ("", "")
    assert answer == "yes"
    assert (
        why == f"{probes[0].skipped:,} samples were skipped: 64 pairs of events waited for the GPU"
    )
    gpu.error = "CUDA error: an illegal memory access was encountered"
    host.now += 60.0
    assert probes[1].begin() is None
    assert source.poll(recorder) == (
        "partly",
        "no GPU time of 1 of 2 regions, such as decode: RuntimeError: CUDA error: an "
        "illegal memory access was encountered",
    )
    source.uninstall()
