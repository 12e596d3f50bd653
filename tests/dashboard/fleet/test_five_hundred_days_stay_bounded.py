"""Five hundred simulated days of a small fleet: the size of tables matches the retention, and
charts have no break."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
from django.test import Client

from dashboard.accounts.models import User
from dashboard.common import clock
from dashboard.fleet.fold_service import end_stale_deployments, fold_all
from dashboard.fleet.models import Deployment, WatchedModel
from dashboard.fleet.retention import RETENTION_SETTING_BY_MODEL, retention_run
from dashboard.projects.models import Project
from dashboard.projects.retention import Retention
from dashboard.regressions.comparison_cache import clear_comparisons
from dashboard.regressions.judge_service import deployments_judge
from dashboard.regressions.models import Verdict
from tests.faults.size import sized

pytestmark = [pytest.mark.django_db, pytest.mark.timeout(1800)]
FIRST_DAY, DAYS = 20_000, 500
EVERY = sized(25, 1)
"""Days between two runs."""


class Clock:
    """Days since 1970 and minutes of the day."""

    day, minute = FIRST_DAY, 700

    def unix(self) -> float:
        return self.day * 86400.0 + self.minute * 60.0 + 35.0


@pytest.fixture
def time_is(monkeypatch: pytest.MonkeyPatch) -> Clock:
    stopped = Clock()
    monkeypatch.setattr(clock, "unix", stopped.unix)
    clear_comparisons()
    return stopped


@pytest.fixture
def fleet(
    time_is: Clock,
    project: Project,
    store_reports: Callable[..., Any],
    make_request: Callable[..., Any],
) -> Callable[..., None]:
    """`fleet(version, p50, instances, minutes)`: these instances of a version report this number of
    minutes, up to now."""
    sent: dict[tuple[str, int], int] = {}

    def report(
        version: str, p50: float = 0.01, instances: tuple[int, ...] = (0,), minutes: int = 1
    ) -> None:
        for instance in instances:
            first = sent.get((version, instance), 0) + 1
            sent[version, instance] = first + minutes - 1
            end = clock.unix() - 60.0
            request = make_request(
                version=version,
                instance=instance,
                p50=p50,
                minutes=minutes,
                first_seq=first,
                end=end,
            )
            store_reports(replace(request, sent=clock.unix()))
        fold_all()

    return report


def test_tables_stay_bounded_and_charts_continue_with_hours_where_minutes_end(
    time_is: Clock, project: Project, user: User, client: Client, fleet: Callable[..., None]
) -> None:
    for time_is.day in range(FIRST_DAY, FIRST_DAY + DAYS + 1, EVERY):
        fleet("1")
        retention_run()
    kept = Retention().as_dict()
    for model, setting in RETENTION_SETTING_BY_MODEL.items():
        rows = model._default_manager.filter(project_id=project.pk)
        if setting != "compile_events":
            assert rows.count() == kept[setting] // EVERY + 1, model
            assert min(rows.values_list("day", flat=True)) >= time_is.day - kept[setting]
    client.force_login(user)  # after the loop, because no session lasts that long
    page = f"/p/{project.slug}/models/{WatchedModel.objects.get().pk}"
    for ago in (0, 35 // EVERY * EVERY, (35 // EVERY + 1) * EVERY, 399 // EVERY * EVERY):
        until = (time_is.day - ago) * 1440 + time_is.minute
        drawn = client.get(f"{page}.json?range=24h&until={until}").json()
        assert any(value is not None for value in values_of(drawn)), (
            f"nothing is drawn {ago} days ago"
        )


def values_of(drawn: Any) -> list[float | None]:
    """Every number of every line."""
    return [
        value for trend in drawn["charts"] for line in trend["lines"] for value in line["values"]
    ]


def test_a_verdict_remains_when_its_input_minutes_are_deleted(
    time_is: Clock, project: Project, fleet: Callable[..., None]
) -> None:
    fleet("1", instances=(0, 1, 2, 3), minutes=30)
    time_is.minute += 60
    fleet("1", instances=(0, 1, 2, 3), minutes=60)
    fleet("2", p50=0.02, instances=(10, 11, 12, 13), minutes=58)
    deployments_judge()
    assert current_verdict("2") == "roll_back"
    candidate = Deployment.objects.filter(version__name="2")
    for time_is.day in range(FIRST_DAY + 1, FIRST_DAY + 15):
        # One minute a day represents traffic without a gap.
        candidate.update(last_minute=clock.minute_of(clock.unix()) - 2, ended_minute=None)
        fleet("2", p50=0.02, instances=(10, 11, 12, 13), minutes=1)
        end_stale_deployments(now_minute=clock.minute_of(clock.unix()))
        retention_run()
        clear_comparisons()
        deployments_judge()
    assert Deployment.objects.get(version__name="1").ended_minute is not None
    assert current_verdict("2") == "roll_back"


def current_verdict(version: str) -> str:
    return Verdict.objects.get(
        current=True, deployment__version__name=version, deployment__ended_minute=None
    ).kind
