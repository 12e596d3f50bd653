"""The simulated versions differ equally at any start time, so the promised verdicts do not depend
on chance."""

from __future__ import annotations

from statistics import mean

from compilewatch.wire.messages import Report

from dashboard.demo.simulated_fleet import SimulatedInstance, build_fleet, build_instances
from dashboard.demo.simulated_training import TRAINING

STARTS = (29_900_000, 29_912_345, 29_987_654)


def median_of(instance: SimulatedInstance) -> float:
    """The mean of the medians over three hours, of one shape, in seconds."""
    medians = []
    for minute in range(30, 210, 3):
        start = (instance.first_minute + minute) * 60.0
        report: Report = instance.report(seq=minute, start=start, end=start + 60.0)
        latency = report.regions[0].latency
        assert latency is not None
        median = latency.quantile(0.5)
        assert median is not None
        medians.append(median)
    return mean(medians)


def test_versions_differ_equally_at_any_start_time() -> None:
    for start in STARTS:
        levels: dict[tuple[str, str], list[float]] = {}
        for instance in build_instances(build_fleet(judged_minutes=25), start_minute=start):
            levels.setdefault((instance.model.name, instance.rollout.version), []).append(
                median_of(instance)
            )
        healthy = mean(levels["llm-7b-chat", "2026.11.2"]) / mean(
            levels["llm-7b-chat", "2026.11.1"]
        )
        slower = mean(levels["ranker", "2026.11.3"]) / mean(levels["ranker", "2026.11.2"])
        assert abs(healthy - 1) < 0.05
        assert 1.2 < slower < 1.4


def test_one_rank_of_the_training_job_compiles_once_more_than_the_others() -> None:
    ranks = build_instances((TRAINING,), start_minute=STARTS[0])
    assert [(one.identity.rank, one.identity.world_size, one.identity.kind) for one in ranks] == [
        (n, 4, "training") for n in range(4)
    ]
    assert len({one.identity.job for one in ranks}) == 1
    assert len({one.identity.host for one in ranks}) == 2
    begun = [
        one.report(seq=1, start=one.first_minute * 60.0, end=one.first_minute * 60.0 + 60.0)
        for one in ranks
    ]
    assert [sum(event.kind == "recompile" for event in report.compiles) for report in begun] == [
        0,
        0,
        1,
        0,
    ]
    assert all(one.identity.simulated for one in ranks)
