"""Database queries: each page has a maximum number of queries, independent of the size of the
fleet."""

from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext

from dashboard.alerts.models import Alert
from dashboard.common import clock
from dashboard.fleet.models import Finding, Instance, LimitReached, WatchedModel
from dashboard.projects.models import Project
from dashboard.regressions.judging_settings import detection_settings_set
from tests.dashboard.ui.charts_story import rolled_back
from tests.dashboard.ui.factory import Shape, model

FRAME = 2  # session; person with projects, roles and waiting items
MOST = {
    "": 6,  # 5 without an open alert: eight with the frame
    "alerts/": 4,  # one for the same versions in other environments, one for the filters
    "alerts/grades/": 7,
    "alerts/{alert}/": 8,
    "findings/": 8,
    "findings/{finding}/": 7,
    "health/": 26,  # measured: 21 to 23, and one more on PostgreSQL
    "search/?q=rank": 5,
    "settings/audit/": 4,
    "settings/data/": 0,
    "settings/guides/": 2,
    "settings/judging/": 7,
    "settings/keys/": 2,
    "settings/members/": 2,
    "settings/messages/": 7,
    "setup/": 6,
    "{model}": 8,
    "{model}?range=30d": 8,
    "{model}compare": 8,
    "{model}instances/": 8,
    "{model}instances/{instance}/": 8,
    "{model}numbers/": 7,
    "{model}ranks/": 6,
    "{model}findings/": 8,
    "{model}findings/?view=all": 8,
    "{model}switch/": 4,
    "{model}versions/": 8,
    "{model}weeks/": 8,
    "{model}compiles/": 8,
    "{model}compiles/?version={version}&compilations=all": 8,
    "{model}startup/": 7,
}
"""The maximum number of queries of each page in addition to those of the frame. Lower a number if
its page needs fewer."""


def queries(client: Client, address: str) -> list[str]:
    with CaptureQueriesContext(connection) as caught:
        assert client.get(address).status_code == 200
    return [query["sql"] for query in caught.captured_queries]


def test_the_fleet_page_needs_as_many_queries_for_twelve_models_as_for_three(
    signed_in: Client, project: Project, alert: Alert
) -> None:
    three = queries(signed_in, "/p/ranking/")
    for number in range(9):
        model(
            project,
            f"model-{number}",
            [Shape("1", 0.01, 50, 900), Shape("2", 0.01, 50, 300)],
            every=120,
        )
    twelve = queries(signed_in, "/p/ranking/")
    assert len(twelve) == len(three)


def test_no_page_exceeds_its_maximum_number_of_queries(
    signed_in: Client, project: Project, alert: Alert
) -> None:
    WatchedModel.objects.filter(name="ranker").update(name="other-ranker")
    made = rolled_back(project)
    names = {
        "alert": alert.number,
        "finding": Finding.objects.filter(project=project).earliest("pk").pk,
        "instance": Instance.objects.filter(model=made.model).earliest("pk").instance_id,
        "model": made.url().removeprefix("/p/ranking/"),
        "version": made.versions["2026.11.3"].pk,
    }
    asked = {
        page: len(queries(signed_in, f"/p/ranking/{page.format(**names)}")) - FRAME for page in MOST
    }
    assert {page: count for page, count in asked.items() if count > MOST[page]} == {}


def test_a_reached_limit_costs_the_frame_one_more_query(
    signed_in: Client, project: Project
) -> None:
    before = len(queries(signed_in, "/p/ranking/settings/data/"))
    now = clock.now()
    LimitReached.objects.create(
        project=project,
        kind="version",
        day=int(now.timestamp() // 86400),
        count=1,
        example="v",
        last_at=now,
    )
    assert len(queries(signed_in, "/p/ranking/settings/data/")) == before + 1


def test_the_detection_page_needs_as_many_queries_for_many_models_and_settings_as_for_few(
    signed_in: Client, project: Project, alert: Alert
) -> None:
    address = f"/p/ranking/settings/judging/?model={alert.deployment.model_id}"
    few = queries(signed_in, address)
    for number in range(9):
        one = model(project, f"model-{number}", [Shape("1", 0.01, 50, 60)], every=60)
        detection_settings_set(
            project=project,
            model=one,
            values={"p50.muted": True, "watch_alpha": 0.1},
            actor_name="tests",
        )
    assert len(queries(signed_in, address)) == len(few)


def test_a_project_without_alerts_and_switches_does_not_query_them(
    signed_in: Client, project: Project
) -> None:
    model(project, "ranker", [Shape("1", 0.01, 50, 900), Shape("2", 0.01, 50, 300)], every=120)
    asked = queries(signed_in, "/p/ranking/")
    assert len(asked) == FRAME + 5 == 7
    assert not [sql for sql in asked[FRAME:] if 'FROM "alert"' in sql or 'FROM "switch"' in sql]
