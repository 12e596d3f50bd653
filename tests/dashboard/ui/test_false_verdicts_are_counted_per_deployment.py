"""False verdicts per deployment: labels of alerts counted per deployment and model, with intervals,
next to the rates that are set. The page, the JSON and the CSV show the same numbers."""

from __future__ import annotations

import csv
from datetime import timedelta
from io import StringIO

import pytest
from django.test import Client

from dashboard.alerts.alert_quality import Proportion
from dashboard.alerts.deployment_quality import (
    DeploymentQuality,
    get_set_rate,
    read_deployment_quality,
)
from dashboard.alerts.models import Alert, AlertEvent
from dashboard.common import clock
from dashboard.fleet.models import Deployment, ModelVersion, WatchedModel
from dashboard.projects.models import Project
from dashboard.regressions.judge import PRODUCTION
from dashboard.regressions.judging_settings import detection_settings_set
from dashboard.regressions.models import Verdict
from dashboard.vocabulary import numbers
from tests.dashboard.alerts.fleet import Fleet, fleet_make

pytestmark = pytest.mark.django_db
PAGE = "/p/ranking/alerts/grades/"


@pytest.fixture
def fleet(project: Project) -> Fleet:
    return fleet_make(project)


def judged(fleet: Fleet, kind: str = "healthy", *, days: int = 1) -> Deployment:
    """A deployment that began some days ago, with one verdict against a baseline."""
    number = Deployment.objects.count()
    now, minute = clock.now(), clock.minute_of(clock.unix()) - days * 1440
    version = ModelVersion.objects.create(
        project=fleet.project,
        model=fleet.model,
        name=f"v{number}",
        first_seen_at=now,
        last_seen_at=now,
    )
    deployment = Deployment.objects.create(
        project=fleet.project,
        model=fleet.model,
        version=version,
        environment="prod",
        started_minute=minute,
        last_minute=minute,
    )
    Verdict.objects.create(
        project=fleet.project,
        deployment=deployment,
        baseline=deployment,
        kind=kind,
        sentence="",
        evidence={},
        minute=minute,
        created_at=now,
    )
    return deployment


def alert(
    deployment: Deployment, outcome: str, worst: str = "roll_back", *, hours: int = 1
) -> Alert:
    return Alert.objects.create(
        project=deployment.project,
        deployment=deployment,
        number=Alert.objects.count() + 1,
        severity=worst,
        worst=worst,
        title="",
        state="resolved" if outcome else "open",
        outcome=outcome,
        opened_at=clock.now() - timedelta(hours=hours),
    )


def counts(one: DeploymentQuality) -> list[tuple[int, int, int, int, int]]:
    return [
        (of.deployments, of.verdicts, of.accepted, of.disputed, of.unlabelled)
        for of in one.severities
    ]


def test_each_deployment_counts_once_by_its_worst_verdict(
    fleet: Fleet, project: Project, other_project: Project
) -> None:
    judged(fleet)
    alert(judged(fleet, "roll_back"), "dismissed")
    alert(judged(fleet, "roll_back"), "accepted")
    alert(judged(fleet, "watch"), "dismissed", "watch")
    judged(fleet, "roll_back")
    alert(judged(fleet, "roll_back", days=91), "dismissed")
    alert(judged(fleet_make(other_project), "roll_back"), "dismissed")
    total, model = read_deployment_quality(project=project)
    assert counts(total) == counts(model) == [(5, 3, 1, 1, 1), (5, 4, 1, 2, 1)]
    [roll_back, watch] = total.severities
    assert roll_back.false_share == Proportion(1, 5)
    assert roll_back.most_false == Proportion(2, 5)
    assert roll_back.false_discovery == Proportion(1, 2)
    assert watch.false_discovery == Proportion(2, 3)


def test_a_version_without_a_baseline_was_not_evaluated(fleet: Fleet, project: Project) -> None:
    first = judged(fleet, "not_enough_data")
    Verdict.objects.filter(deployment=first).update(baseline=None)
    assert counts(read_deployment_quality(project=project)[0])[0][0] == 0
    Verdict.objects.filter(deployment=first).update(kind="roll_back")
    assert counts(read_deployment_quality(project=project)[0])[0] == (1, 1, 0, 0, 1)


def test_the_latest_grade_is_the_label(fleet: Fleet, project: Project) -> None:
    one = judged(fleet, "roll_back")
    alert(one, "dismissed", hours=9)
    alert(one, "accepted", hours=5)
    alert(one, "", hours=1)
    assert counts(read_deployment_quality(project=project)[0])[0] == (1, 1, 1, 0, 0)


def test_a_label_of_a_watch_alert_is_no_label_of_roll_back(fleet: Fleet, project: Project) -> None:
    one = judged(fleet, "roll_back")
    alert(one, "dismissed", "watch", hours=9)
    alert(one, "", hours=1)
    assert counts(read_deployment_quality(project=project)[0]) == [(1, 1, 0, 0, 1), (1, 1, 0, 1, 0)]


def test_a_rollback_that_did_not_help_disputes_the_verdict(fleet: Fleet, project: Project) -> None:
    made = alert(judged(fleet, "roll_back"), "rolled_back")
    assert counts(read_deployment_quality(project=project)[0])[0] == (1, 1, 1, 0, 0)
    AlertEvent.objects.create(alert=made, at=clock.now(), kind="level_not_back", text="")
    assert counts(read_deployment_quality(project=project)[0])[0] == (1, 1, 0, 1, 0)


def test_the_set_rate_is_that_of_each_model(fleet: Fleet, project: Project) -> None:
    other = fleet_make(project, "embedder")
    for _ in range(3):
        judged(fleet)
    judged(other)
    values = {"roll_back_alpha": 0.002}
    detection_settings_set(project=project, model=other.model, values=values, actor_name="tests")
    total, ranker, embedder = read_deployment_quality(project=project)
    assert (ranker.name, embedder.name) == ("ranker", "embedder")
    usual = get_set_rate(PRODUCTION, "roll_back")
    assert [one.severities[0].nominal for one in (ranker, embedder)] == [usual, 0.002]
    assert total.severities[0].nominal == pytest.approx((3 * usual + 0.002) / 4)
    assert total.severities[1].nominal == pytest.approx(get_set_rate(PRODUCTION, "watch"))


def test_the_page_and_the_files_show_the_same_numbers(
    signed_in: Client, fleet: Fleet, project: Project
) -> None:
    for _ in range(38):
        judged(fleet)
    for outcome in ("dismissed",) * 9 + ("accepted",) * 3 + ("",) * 2:
        alert(judged(fleet, "roll_back"), outcome)
    WatchedModel.objects.update(simulated=True)
    page = signed_in.get(PAGE).content.decode()
    [row, *_] = signed_in.get("/p/ranking/alerts/grades.json").json()["deployments"]
    assert (row["deployments"], row["verdicts"], row["unlabelled"]) == (52, 14, 2)
    assert row["false_share"] == 9 / 52
    assert row["false_text"] == "9 of 52, 1 in 5"
    assert row["false_interval"] == "95% CI 1 in 10 to 1 in 3"
    assert row["most_false_text"] == "11 of 52, 1 in 4"
    assert row["above_set_rate"] is True
    assert row["set_rate_text"] == numbers.one_in(PRODUCTION.roll_back_alpha)
    assert (row["false_discovery_text"], row["false_discovery"]) == ("75%", 0.75)
    for text in (row["false_text"], row["false_interval"], row["most_false_text"], "<b>75%</b>"):
        assert text in page
    assert "<b>exceeded</b>" in page
    [head, first, *_] = csv.reader(
        StringIO(signed_in.get(f"{PAGE}deployments.csv").content.decode())
    )
    read = dict(zip(head, first, strict=True))
    assert (read["model"], read["verdict"]) == ("All models", "ROLL BACK")
    assert float(read["false_low"]) == row["false_low"]
    assert {name: read[name] for name in ("false_text", "set_rate_text")} == {
        name: row[name] for name in ("false_text", "set_rate_text")
    }


def test_the_page_states_what_is_missing(signed_in: Client, fleet: Fleet, project: Project) -> None:
    assert "No deployment was evaluated in this period." in signed_in.get(PAGE).content.decode()
    judged(fleet, "roll_back")
    page = signed_in.get(PAGE).content.decode()
    assert "No verdict is labelled yet." in page
    assert "0 of 1" in page and "with unlabelled: 1 of 1, 100%" in page
    assert "<b>exceeded</b>" not in page
