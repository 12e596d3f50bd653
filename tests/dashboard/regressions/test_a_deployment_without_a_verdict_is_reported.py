"""A live deployment without evaluation, because the judge fails on it or does not run, is counted
on pages and in alarms."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from dashboard.demo.simulated_fleet import SimulatedInstance
from dashboard.regressions.health import LATE_MINUTES, judge_check
from dashboard.regressions.judge_service import deployments_judge

from .conftest import Clock

pytestmark = pytest.mark.django_db


def test_overdue_deployments_are_counted_until_they_are_evaluated(
    side_by_side: list[SimulatedInstance], send: Callable[[SimulatedInstance], None], time_is: Clock
) -> None:
    assert judge_check().ok
    for instance in side_by_side:
        send(instance)
    late = judge_check()
    assert (late.ok, late.value) == (False, 2)
    assert late.sentence.startswith(
        f"2 deployments have not been evaluated for over {LATE_MINUTES} min"
    )
    deployments_judge()
    assert judge_check().ok
    time_is.minute += LATE_MINUTES
    assert judge_check().ok
    time_is.minute += 1
    assert not judge_check().ok


def test_deployments_beyond_the_time_of_a_turn_are_evaluated_in_the_next(
    side_by_side: list[SimulatedInstance], send: Callable[[SimulatedInstance], None]
) -> None:
    for instance in side_by_side:
        send(instance)
    turns: list[int] = []
    while (late := judge_check().value) and len(turns) < 5:
        turns.append(late)
        deployments_judge(seconds=0.0, unfinished=lambda: turns.append(-1))
    assert turns == [2, -1, 1]
    with CaptureQueriesContext(connection) as queries:
        deployments_judge()
    assert sum('FROM "deployment"' in query["sql"] for query in queries.captured_queries) == 1, (
        "a single query finds that nothing is due"
    )
