"""Whatever the time of the start, the simulated versions differ by as much, so that the promised verdicts do not hang on luck."""

from __future__ import annotations

from statistics import mean

from compilewatch.wire.report import Report

from dashboard.demo.fleet import SimulatedInstance, fleet, instances

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


def test_versions_differ_alike_whenever_the_demo_starts() -> None:
    for start in STARTS:
        levels: dict[tuple[str, str], list[float]] = {}
        for instance in instances(fleet(judged_minutes=25), start_minute=start):
            levels.setdefault((instance.model.name, instance.rollout.version), []).append(median_of(instance))
        healthy = mean(levels["llm-7b-chat", "2026.11.2"]) / mean(levels["llm-7b-chat", "2026.11.1"])
        slower = mean(levels["ranker", "2026.11.3"]) / mean(levels["ranker", "2026.11.2"])
        assert abs(healthy - 1) < 0.05
        assert 1.2 < slower < 1.4
