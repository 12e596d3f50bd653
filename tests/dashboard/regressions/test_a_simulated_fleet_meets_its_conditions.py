"""Each condition of a simulated fleet changes the instances, minutes and values that it should, and
no others."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from tests.bench.fleet_model import Bools, Fleet, Floats
from tests.bench.fleet_sim import Simulated, simulate

HISTORY = 300
SIDE = Fleet(
    seed=900_001, history=HISTORY, minutes=600, replaces=True, candidates=2, stagger=0, phase=400
)
IN_TURN = Fleet(seed=900_002, history=HISTORY, minutes=600, sequential=True, gpus=("H100",))


def drawn(fleet: Fleet, **changes: object) -> tuple[Simulated, Simulated]:
    """The fleet without and with a condition."""
    return simulate(fleet), simulate(replace(fleet, **changes))  # type: ignore[arg-type]


def slower(usual: Simulated, changed: Simulated) -> Floats:
    """The change of p50 of small calls on the log; NaN without calls. Rounding is 0.01."""
    return np.asarray((changed.p50 - usual.p50)[..., 0])


def lengths(flags: Bools) -> list[int]:
    """Lengths of the runs of True."""
    edges = np.flatnonzero(np.diff(np.pad(flags.astype(int), 1)))
    return [int(end - begin) for begin, end in edges.reshape(-1, 2)]


def test_a_throttled_node_is_slow_for_hours_with_all_its_instances() -> None:
    usual, changed = drawn(replace(IN_TURN, minutes=3000), throttles_per_day=1.0)
    change = np.nan_to_num(slower(usual, changed))
    hit = change > 0.15
    assert 0 < hit.mean() < 0.5
    assert max(lengths(hit.any(axis=0))) >= 60
    both = [
        set(usual.host[usual.candidate == arm][hit[usual.candidate == arm].any(axis=1)])
        for arm in (False, True)
    ]
    assert both[1] and np.nanmedian(change[hit]) < np.log(1.8) + 0.02


def test_a_power_cap_slows_all_nodes_of_a_gpu_type() -> None:
    usual, changed = drawn(SIDE, power_caps_per_day=2.0)
    hit = np.nan_to_num(slower(usual, changed)) > 0.08
    for gpu in ("H100", "A100"):
        rows = np.flatnonzero([each == gpu for each in usual.gpu])
        running = (usual.calls[rows, :, 0] > 0) & (changed.calls[rows, :, 0] > 0)
        shares = [hit[rows, minute][running[:, minute]].mean() for minute in range(400, 880)]
        assert set(shares) <= {0.0, 1.0}
    assert hit.any()


def test_a_burst_slows_every_second_node_at_once() -> None:
    usual, changed = drawn(SIDE, rack_bursts_per_day=10.0)
    hit = np.nan_to_num(slower(usual, changed)) > 0.08
    racks = [hit[usual.host % 2 == rack].any(axis=0) for rack in (0, 1)]
    assert racks[0].any() and racks[1].any() and (racks[0] != racks[1]).any()


def test_a_young_process_is_slower_for_an_hour() -> None:
    usual, changed = drawn(SIDE, settle=0.3)
    change = slower(usual, changed)
    of_candidate = change[usual.candidate]
    assert np.nanmean(of_candidate[:, HISTORY + 3 : HISTORY + 10]) > 0.15
    assert np.nanmax(np.abs(of_candidate[:, HISTORY + 120 :])) <= 0.011
    assert np.nanmax(np.abs(change[~usual.candidate, HISTORY:])) <= 0.011


def test_lengths_of_calls_of_sticky_users_change_over_the_day() -> None:
    usual, changed = drawn(replace(SIDE, minutes=1440), sticky=0.1)
    spread = np.nanmax(slower(usual, changed), axis=1) - np.nanmin(slower(usual, changed), axis=1)
    assert (spread[usual.candidate] > 0.15).all()


def test_a_drifting_node_changes_over_a_day() -> None:
    usual, changed = drawn(IN_TURN, drift_sd=0.05)
    assert 0.02 < np.nanstd(slower(usual, changed)) < 0.1


def test_a_pause_lengthens_the_slowest_calls() -> None:
    usual, changed = drawn(SIDE, pauses_per_hour=6.0)
    longer = (changed.p99 - usual.p99)[..., 0] > 0.25
    assert 0.03 < longer.mean() < 0.2
    assert np.nanmax(slower(usual, changed)) <= 0.04


def test_a_storm_fails_calls_of_both_arms_and_adds_retries() -> None:
    usual, changed = drawn(replace(SIDE, minutes=1440), storms_per_day=8.0)
    share = changed.errors[..., 0] / np.maximum(changed.calls[..., 0], 1)
    running = (changed.calls[:, :, 0] > 20)[:, HISTORY + 5 :]
    stormy = (share[:, HISTORY + 5 :] > 0.03) & running
    minutes = stormy.sum(axis=0) >= 6
    assert max(lengths(minutes)) >= 5
    assert stormy[usual.candidate][:, minutes].mean() > 0.9
    calls = [
        each.calls[:, HISTORY + 5 :].sum(axis=(0, 2))[minutes].sum() for each in (usual, changed)
    ]
    assert calls[1] > 1.05 * calls[0]


@pytest.mark.parametrize("latency", ["pareto", "bimodal"])
def test_latencies_have_their_own_shape(latency: str) -> None:
    fleet = replace(
        SIDE,
        host_sd=0.0,
        process_sd=0.0,
        minute_sd=0.0,
        fleet_sd=0.0,
        day_swing=0.0,
        bursts_per_day=0.0,
        tail_chance=0.0,
        latency=latency,
        gpus=("H100",),
    )
    found = simulate(fleet)
    p50 = found.p50[..., 0][~np.isnan(found.p50[..., 0])] - np.log(0.008)
    p99 = found.p99[..., 0][~np.isnan(found.p99[..., 0])] - np.log(0.008)
    if latency == "pareto":
        assert abs(np.median(p99) - np.log(50) / 2) < 0.1
        assert p99.std() > 0.2
    else:
        upper = p50 > np.log(3) / 2
        assert 0.05 < upper.mean() < 0.5
        assert 0.1 < p50.std() < 0.3


def test_seconds_of_pareto_calls_are_those_of_their_mean() -> None:
    found = simulate(replace(SIDE, latency="pareto", gpus=("H100",), calls_per_minute=3000.0))
    ratio = found.seconds[..., 0] / np.maximum(found.calls[..., 0], 1) / np.exp(found.p50[..., 0])
    assert abs(np.nanmedian(ratio) - 2**0.5) < 0.1
