"""Evaluated series: outermost regions only, jobs instead of ranks, and GPU time if calls return
before the device finishes."""

import pytest

from dashboard.regressions.judge import judge
from tests.dashboard.regressions.fleets import every_minute, instance


def rows_of(rows: list, minutes: int = 40) -> dict:
    outcome = judge(list(every_minute(rows, minutes)), now_minute=minutes, deployed_minute=0)
    return {(row.region, row.metric): row for row in outcome.evidence}


def test_inner_regions_are_not_evaluated():
    rows = rows_of(
        [
            instance("b1"),
            instance("c1"),
            instance("c1", region="inner", outermost=False),
            instance("b1", region="inner", outermost=False),
        ]
    )
    assert {region for region, _ in rows} == {"forward"}


def test_more_regions_share_the_error_budget():
    pair = [instance("b1"), instance("c1")]
    alone = rows_of(pair)["forward", "p50"]
    both = rows_of([*pair, instance("b1", region="encode"), instance("c1", region="encode")])
    assert both["forward", "p50"].smallest_visible > alone.smallest_visible
    assert ("encode", "p50") in both


def test_ranks_of_a_job_count_once():
    ranks = [instance(f"c{rank}", unit="job", p50=0.010 * (1 + rank / 100)) for rank in range(4)]
    row = rows_of([instance("b1"), instance("b2"), *ranks])["forward", "p50"]
    assert row.candidate_instances == 1
    assert [dot.instance for dot in row.dots if dot.arm == "candidate"] == ["job"]


def gpu(name: str, wall: float, device: float | None, count: int = 50):
    return instance(name, p50=wall, gpu_p50=device, gpu_count=count)


def test_an_asynchronous_region_is_evaluated_by_gpu_time_and_shows_wall_time():
    rows = rows_of([gpu("b1", 0.001, 0.010), gpu("c1", 0.001, 0.020)])
    assert (rows["forward", "gpu_p50"].judged, rows["forward", "p50"].judged) == (True, False)
    assert rows["forward", "gpu_p50"].change == pytest.approx(1.0)
    assert rows["forward", "gpu_p50"].drives
    assert not rows["forward", "p50"].drives


def test_a_region_that_waits_for_the_device_is_evaluated_by_wall_time():
    rows = rows_of([gpu("b1", 0.012, 0.010), gpu("c1", 0.012, 0.010)])
    assert (rows["forward", "gpu_p50"].judged, rows["forward", "p50"].judged) == (False, True)


@pytest.mark.parametrize("candidate", [gpu("c1", 0.001, None, 0), gpu("c1", 0.001, 0.010, 0)])
def test_with_gpu_time_on_one_side_only_wall_time_is_used(candidate):
    rows = rows_of([gpu("b1", 0.001, 0.010), candidate])
    assert rows["forward", "p50"].judged
