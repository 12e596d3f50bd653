"""A simulated fleet whose young processes are slower: by `SLOWER` at their start, linearly less until
`SETTLED_MINUTES`."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from dashboard.regressions.judge import Comparison, InstanceMinute, Outcome, Settings
from dashboard.regressions.judge.evaluate import evaluate_comparison
from dashboard.regressions.judge.warm_up import WarmUpLesson, WarmUpSums
from tests.bench.fleet_sim import Fleet, instance_minutes

SLOWER, SETTLED_MINUTES = 0.4, 30
LESSON_MINUTES = 200


def slow_start(row: InstanceMinute) -> InstanceMinute:
    """The row of a process that is slower while it is young."""
    age = row.minute - row.first_minute
    factor = 1 + SLOWER * max(0.0, 1 - age / SETTLED_MINUTES)
    return replace(
        row,
        **{name: value and value * factor for name, value in (("p50", row.p50), ("p99", row.p99))},
    )


def young_minutes(fleet: Fleet) -> Iterator[list[InstanceMinute]]:
    """The rows of the fleet by minute."""
    for rows in instance_minutes(fleet):
        yield [slow_start(row) for row in rows]


def learn(fleet: Fleet, settings: Settings) -> WarmUpSums:
    """The lesson of one pair of versions."""
    comparison, lesson = Comparison(fleet.history, settings), WarmUpLesson(settings)
    for minute, rows in enumerate(young_minutes(fleet)):
        comparison.add_minute(minute, rows)
        lesson.observe(comparison, rows)
    return lesson.taught()


def evaluate(fleet: Fleet, settings: Settings) -> Outcome:
    """The outcome at the end of the fleet."""
    comparison = Comparison(fleet.history, settings)
    for minute, rows in enumerate(young_minutes(fleet)):
        comparison.add_minute(minute, rows)
    return evaluate_comparison(comparison, now_minute=fleet.history + fleet.minutes)
