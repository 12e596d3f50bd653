"""Savings of compiled calls: GPU times are compared if both sides have them, otherwise the times
that callers measured."""

from __future__ import annotations

from dataclasses import dataclass, replace

import pytest

from dashboard.fleet.metrics.break_even import MIN_CALLS, compute_break_even, estimate_savings


@dataclass(frozen=True)
class Calls:
    version: str = "1"
    place: tuple[str, str, str, int] = ("forward", "2^4", "NVIDIA H200", 1)
    last_minute: int = 7
    calls: int = 1000
    latency_sum: float = 0.4  # the caller continues after 0.4 ms
    latency_count: int = 1000
    gpu_sum: float = 0.2  # the GPU finishes after 4 ms
    gpu_count: int = 50


EAGER = Calls("eager", calls=50, latency_sum=0.1, latency_count=50, gpu_sum=0.45, gpu_count=50)


def test_asynchronous_calls_are_compared_by_gpu_time() -> None:
    saved = estimate_savings([Calls()], [EAGER])
    assert (
        saved is not None
        and saved.seconds == pytest.approx(1000 * (0.009 - 0.004))
        and saved.on_gpu == saved.calls == 1000
    )
    assert saved.low < saved.seconds < saved.high


def test_with_too_few_gpu_times_there_is_no_estimate_from_caller_times() -> None:
    """Observed on a resnet50 with 16 GPU times and 742 caller times: the caller times gave a
    quarter of the real savings."""
    assert estimate_savings([replace(Calls(), gpu_count=MIN_CALLS - 1)], [EAGER]) is None
    assert estimate_savings([Calls()], [replace(EAGER, gpu_count=MIN_CALLS - 1)]) is None


def test_without_gpu_times_on_one_side_caller_times_are_compared() -> None:
    saved = estimate_savings([Calls()], [replace(EAGER, gpu_count=0, gpu_sum=0.0)])
    assert (
        saved is not None
        and saved.seconds == pytest.approx(1000 * (0.002 - 0.0004))
        and saved.on_gpu == 0
    )


def test_another_place_or_too_few_calls_give_no_estimate() -> None:
    assert (
        estimate_savings([Calls()], [replace(EAGER, place=("forward", "2^5", "NVIDIA H200", 1))])
        is None
    )
    assert (
        estimate_savings([Calls()], [replace(EAGER, latency_count=MIN_CALLS - 1, gpu_count=0)])
        is None
    )


def test_durations_of_days_are_ignored() -> None:
    assert estimate_savings([Calls()], [replace(EAGER, latency_sum=50 * 1e12, gpu_count=0)]) is None
    assert estimate_savings([replace(Calls(), gpu_sum=50 * 1e12)], [EAGER]) is None


def test_break_even_is_a_number_of_calls_or_never() -> None:
    assert compute_break_even(30.0, 5.0, 1000) == pytest.approx(6000)
    assert compute_break_even(30.0, -5.0, 1000) is None and compute_break_even(30.0, 0.0, 0) is None
