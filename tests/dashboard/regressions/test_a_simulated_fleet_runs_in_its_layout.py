"""Instances of a simulated fleet start, stop, share nodes, restart and get their share of calls
according to its layout."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import replace

import numpy as np

from dashboard.regressions.judge import InstanceMinute
from tests.bench.fleet_model import Fleet
from tests.bench.fleet_sim import instance_minutes, simulate
from tests.bench.fleet_worlds import LAYOUTS
from tests.bench.process_sim import instance_states

DAY = 1440
SHORT = {"seed": 910_001, "history": 120, "minutes": 240}
CANARY = replace(LAYOUTS["2 v 2"], **SHORT)


def rows(fleet: Fleet) -> list[InstanceMinute]:
    """All rows; the deployment is at minute 0."""
    return [row for minute in instance_minutes(fleet, -fleet.history) for row in minute]


def lives(fleet: Fleet, arm: str) -> dict[tuple[str, str | int], tuple[int, int]]:
    """First and last minute by host and instance."""
    found = defaultdict(list)
    for row in rows(fleet):
        if row.arm == arm:
            found[row.host, row.instance].append(row.minute)
    return {key: (min(minutes), max(minutes)) for key, minutes in found.items()}


def test_a_canary_takes_the_place_of_a_baseline_instance() -> None:
    old, new = lives(CANARY, "baseline"), lives(CANARY, "candidate")
    ended = {host for (host, _), (_, last) in old.items() if last < 10}
    assert ended == {host for host, _ in new} and len(ended) == 2
    assert sum(last == 239 for _, last in old.values()) == 2
    assert all(first >= 3 for first, _ in new.values())


def test_blue_green_replaces_all_instances_at_once_on_the_same_nodes() -> None:
    fleet = replace(LAYOUTS["blue/green"], **SHORT)
    old, new = lives(fleet, "baseline"), lives(fleet, "candidate")
    assert {host for host, _ in old} == {host for host, _ in new}
    assert {last for _, last in old.values()} == {-1}
    assert {first for first, _ in new.values()} == {3}
    assert not {name for _, name in old} & {name for _, name in new}


def test_hosts_follow_each_other() -> None:
    fleet = replace(LAYOUTS["host by host"], **SHORT)
    assert sorted(first for first, _ in lives(fleet, "candidate").values()) == [3, 23, 43, 63]


def test_a_training_job_starts_after_the_end_of_the_one_before() -> None:
    fleet = replace(LAYOUTS["job after job"], **SHORT)
    assert {last for _, last in lives(fleet, "baseline").values()} == {-1}
    assert {first for first, _ in lives(fleet, "candidate").values()} == {33}


def test_a_pod_with_an_unknown_node_is_a_host_of_its_own() -> None:
    fleet = replace(CANARY, restarts_per_day=20.0)
    known, unknown = rows(fleet), rows(replace(fleet, nodes_known=False))
    assert len({row.instance for row in known}) > len({row.host for row in known}) == 4
    assert len({row.unit for row in known}) == 6
    pods = {row.instance for row in unknown}
    assert len(pods) == len({row.host for row in unknown}) == len({row.unit for row in unknown})
    assert pods == {row.instance for row in known}


def test_a_redeployment_restarts_each_candidate_once() -> None:
    fleet = replace(CANARY, redeploy=90)
    found = lives(fleet, "candidate")
    assert len(found) == 4
    assert sorted(first for first, _ in found.values()) == [3, 5, 93, 95]
    states = [state for minute in instance_states(fleet, -120) for state in minute]
    calls = {row.instance: row.first_minute for row in rows(fleet)}
    assert {state.instance: state.first_minute for state in states} == calls
    starts = {state.instance: state.start for state in states if state.start}
    assert len(set(starts.values())) == len(starts) > 6


def test_a_canary_has_its_share_of_the_calls() -> None:
    for share in (0.01, 0.5):
        found = simulate(replace(CANARY, traffic_share=share, minutes=DAY))
        calls = found.calls[:, 200:].sum(axis=(1, 2))
        assert abs(calls[found.candidate].sum() / calls.sum() - share) < 0.15 * share


def test_traffic_moves_from_the_baseline_to_the_canary_over_the_ramp() -> None:
    found = simulate(replace(CANARY, ramp=120))
    by_arm = [found.calls[found.candidate == arm].sum(axis=(0, 2))[120:] for arm in (True, False)]
    shares = by_arm[0] / (by_arm[0] + by_arm[1])
    assert shares[10] < 0.15 and 0.4 < shares[60] < 0.6 and (shares[125:] == 1.0).all()


def test_a_node_with_two_gpus_runs_both_versions() -> None:
    found = simulate(replace(CANARY, pairs=True))
    new, left = found.host[found.candidate], found.host[:2]
    assert sorted(new) == sorted(left)


def test_an_instance_scales_with_the_traffic() -> None:
    found = simulate(replace(CANARY, autoscale=True, minutes=2 * DAY))
    running = (found.calls.sum(axis=2) > 0)[found.candidate][:, 130:]
    assert running[0].all() and 0 < running[1].mean() < 1
    assert found.process.max() >= 1


def test_weekends_have_fewer_and_faster_calls() -> None:
    fleet = replace(CANARY, minutes=6 * DAY, traffic_swing=0.0, day_swing=0.0)
    usual, found = simulate(fleet), simulate(replace(fleet, weekend=0.1))
    ratio = found.calls[0].sum(axis=1) / np.maximum(usual.calls[0].sum(axis=1), 1)
    change = np.where(ratio < 0.6, 1.0, 0.0)
    assert 0.15 < change.mean() < 0.5
    faster = (found.p50 - usual.p50)[0, :, 0]
    assert abs(np.nanmean(faster[change > 0]) + 0.1) < 0.02
