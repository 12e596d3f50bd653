"""Precision and recall of the alerts: counted from user feedback and observed events, without a
percentage if there is too little data."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.test import Client

from dashboard.alerts.alert_quality import Proportion, read_alert_quality
from dashboard.alerts.models import Alert, AlertEvent
from dashboard.common import clock
from dashboard.fleet.models import Deployment, ModelVersion, WatchedModel
from dashboard.projects.models import Project
from tests.dashboard.alerts.fleet import Fleet, fleet_make

pytestmark = pytest.mark.django_db


@pytest.fixture
def fleet(project: Project) -> Fleet:
    return fleet_make(project)


def version(
    fleet: Fleet, name: str, *, hours: tuple[int, int | None], environment: str = "prod"
) -> Deployment:
    """A deployment that ran from `hours[0]` to `hours[1]` hours ago, or still runs if `hours[1]` is
    None."""
    now, minute = clock.now(), clock.minute_of(clock.unix())
    began, ended = hours
    last = minute - (ended or 0) * 60
    made, _ = ModelVersion.objects.get_or_create(
        project=fleet.project, model=fleet.model, name=name,
        defaults={"first_seen_at": now - timedelta(hours=began), "last_seen_at": now},
    )  # fmt: skip
    return Deployment.objects.create(
        project=fleet.project, model=fleet.model, version=made, environment=environment,
        started_minute=minute - began * 60, last_minute=last, ended_minute=None if ended is None else last,
    )  # fmt: skip


def alert(
    deployment: Deployment,
    outcome: str,
    *,
    worst: str = "roll_back",
    days: int = 1,
    not_back: bool = False,
) -> Alert:
    number = Alert.objects.count() + 1
    made = Alert.objects.create(
        project=deployment.project, deployment=deployment, number=number, severity=worst, worst=worst, title="",
        state="resolved" if outcome else "open", outcome=outcome, opened_at=clock.now() - timedelta(days=days),
    )  # fmt: skip
    if not_back:
        AlertEvent.objects.create(alert=made, at=clock.now(), kind="level_not_back", text="")
    return made


def test_every_outcome_has_exactly_one_grade(
    fleet: Fleet, project: Project, other_project: Project
) -> None:
    for number, outcome in enumerate(
        ("rolled_back", "resolved", "accepted", "dismissed", "recovered", "replaced", "stopped", "")
    ):
        alert(version(fleet, str(number), hours=(30, 20)), outcome)
    alert(version(fleet, "8", hours=(30, 20)), "rolled_back", not_back=True)
    alert(version(fleet, "9", hours=(30, 20)), "dismissed", worst="watch")
    alert(version(fleet, "10", hours=(30, 20)), "dismissed", days=91)
    alert(version(fleet_make(other_project), "1", hours=(30, 20)), "dismissed")
    rolled, watched = read_alert_quality(project=project).graded
    assert (rolled.count("right"), rolled.count("false"), rolled.count("not graded")) == (2, 2, 5)
    assert (watched.count("right"), watched.count("false"), watched.count("not graded")) == (
        0,
        1,
        0,
    )
    assert rolled.precision == Proportion(2, 4)


def test_a_rollback_without_an_alert_is_a_false_negative(fleet: Fleet, project: Project) -> None:
    version(fleet, "1", hours=(200, None))
    version(fleet, "2 silently gone", hours=(100, 90))
    alert(version(fleet, "3 alerted", hours=(80, 70)), "rolled_back")
    alert(version(fleet, "4 watched", hours=(60, 50)), "recovered", worst="watch")
    version(fleet, "5 elsewhere", hours=(40, 30), environment="staging")
    found = read_alert_quality(project=project).roll_backs
    assert (found.told, found.watched, found.missed, found.recall.whole) == (1, 1, 1, 3)


def test_a_version_replaced_by_a_later_one_was_not_rolled_back(
    fleet: Fleet, project: Project
) -> None:
    version(fleet, "1", hours=(200, 1))
    version(fleet, "2", hours=(100, 50))
    version(fleet, "3", hours=(52, None))
    assert read_alert_quality(project=project).roll_backs.recall.whole == 0


def test_a_proportion_has_the_wilson_interval() -> None:
    assert Proportion(0, 0).value is None and Proportion(0, 0).interval is None
    low, high = Proportion(9, 10).interval or (0, 0)
    assert (round(low, 3), round(high, 3)) == (0.596, 0.982), (
        "the Wilson interval, as in published tables"
    )
    assert not Proportion(9, 9).enough and Proportion(9, 10).enough


def test_the_page_shows_counts_and_no_percentage_of_a_small_number(
    signed_in: Client, fleet: Fleet, project: Project
) -> None:
    page = signed_in.get("/p/ranking/alerts/grades/").content.decode()
    assert page.count("<b>–</b>") == 3
    one = version(fleet, "1", hours=(30, 20))
    for _ in range(3):
        alert(one, "dismissed")
    page = signed_in.get("/p/ranking/alerts/grades/").content.decode()
    assert "0 of 3 (too few for a percentage)" in page
    for _ in range(9):
        alert(one, "accepted")
    page = signed_in.get("/p/ranking/alerts/grades/").content.decode()
    assert "<b>75%</b>" in page and "95% CI" in page
    WatchedModel.objects.update(simulated=True)
    assert (
        "12 of these alerts are of simulated models"
        in signed_in.get("/p/ranking/alerts/grades/").content.decode()
    )
