"""A live deployment that is not judged, because the judge fails on it or does not run, is counted
where people and alarms look."""

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


def test_what_is_late_to_be_judged_is_counted_until_it_is_judged(
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


def test_what_does_not_fit_into_a_turn_is_judged_in_the_next(
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
        "one says that nothing is due"
    )
