"""Unusual fleets get a stated result: short-lived pods, jumping clocks, constant values, many
versions at once."""

from __future__ import annotations

from dataclasses import replace

import pytest

from dashboard.regressions.judge import (
    Comparison,
    InstanceMinute,
    evaluate_comparison,
    judge,
    pooled_estimate,
)
from dashboard.regressions.judge.affected_instances import AffectedSeries
from dashboard.regressions.judge.level_ratio import RatioSeries
from tests.dashboard.regressions.fleets import every_minute, instance

FOUR = [instance(name) for name in ("b1", "b2", "c1", "c2")]


def pods(minutes: int, every: int, slower: float) -> Comparison:
    """Two pods of each version at a time; new pods with new names replace them repeatedly."""
    comparison = Comparison(0)
    for minute in range(minutes):
        life = minute // every
        rows: list[InstanceMinute] = []
        for arm, took in (("b", 0.010), ("c", 0.010 * (1 + slower))):
            rows += [
                instance(
                    f"{arm}{life}-{n}", minute=minute, first_minute=-60, p50=took * (1 + 0.01 * n)
                )
                for n in (1, 2)
            ]
        comparison.add_minute(minute, rows)
    return comparison


def units(comparison: Comparison) -> int:
    """The largest number of entries in any one cell or count."""
    counts = [0]
    for series, _ in comparison.regions["forward"].entries:
        if isinstance(series, RatioSeries):
            counts += [len(cell.candidate) for cell in series.cells.values()]
        elif isinstance(series, AffectedSeries):
            counts += [len(windows) for windows in series.candidate.values()]
    return max(counts)


def test_instances_that_ended_long_ago_are_evicted_and_the_verdict_remains(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    whole = pods(2200, 40, 0.3)
    monkeypatch.setattr(pooled_estimate, "MAX_UNITS", 20)
    bounded = pods(2200, 40, 0.3)
    assert units(whole) == 110 and units(bounded) <= 2 * (1440 // 40 + 2)
    outcomes = [evaluate_comparison(comparison, now_minute=2200) for comparison in (whole, bounded)]
    assert [outcome.verdict for outcome in outcomes] == ["roll_back", "roll_back"]
    (before,), (after,) = (
        [row for row in outcome.evidence if row.metric == "p50"] for outcome in outcomes
    )
    assert (
        before.change == pytest.approx(after.change, abs=0.01)
        and before.matched_minutes == after.matched_minutes
    )


def test_instances_of_a_large_live_fleet_are_never_evicted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pooled_estimate, "MAX_UNITS", 20)
    comparison = Comparison(0)
    rows = [instance(f"{arm}{number}") for arm in "bc" for number in range(40)]
    for minute in range(60):
        comparison.add_minute(minute, [replace(row, minute=minute) for row in rows])
    (row,) = [
        row
        for row in evaluate_comparison(comparison, now_minute=60).evidence
        if row.metric == "p50"
    ]
    assert (row.baseline_instances, row.candidate_instances) == (40, 40)


def test_a_clock_that_jumps_a_day_ahead_is_a_gap_and_no_change() -> None:
    rows = [*every_minute(FOUR, 60), *every_minute(FOUR, 60, start=60 + 1440)]
    outcome = judge(rows, now_minute=1560, deployed_minute=0)
    assert "roll_back" not in {verdict for _, verdict in outcome.transitions}
    assert outcome.compared_minutes == 120


def test_a_clock_that_jumps_back_is_late_data_and_refused_in_ordered_minutes() -> None:
    comparison = Comparison(0)
    comparison.add_minute(10, [replace(row, minute=10) for row in FOUR])
    with pytest.raises(ValueError, match="minute 9 comes after minute 10: replay"):
        comparison.add_minute(9, [])


def test_constant_values_keep_the_assumed_spread() -> None:
    (row,) = [
        row
        for row in judge(every_minute(FOUR, 90), now_minute=90, deployed_minute=0).evidence
        if row.metric == "p50"
    ]
    assert (
        row.change == pytest.approx(0.0)
        and row.smallest_visible is not None
        and row.smallest_visible > 0.05
    )


def test_each_of_five_hundred_versions_is_evaluated_independently() -> None:
    """The same minutes in five hundred comparisons in turn: the one slower version is found, and no
    other."""
    fleet = [Comparison(0) for _ in range(500)]
    for minute in range(22):
        plain = [replace(row, minute=minute) for row in FOUR]
        slow = [replace(row, p50=0.02) if row.arm == "candidate" else row for row in plain]
        for number, comparison in enumerate(fleet):
            comparison.add_minute(minute, slow if number == 137 else plain)
    verdicts = [comparison.policy.verdict for comparison in fleet]
    assert verdicts[137] == "roll_back" and verdicts.count("not_enough_data") == 499
