"""Queries per page do not grow with the fleet."""

from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext

from dashboard.alerts.models import Alert
from dashboard.projects.models import Project
from dashboard.regressions.judging import judging_set
from tests.dashboard.ui.factory import Shape, model

FRAME = 7  # session, person, project, role, memberships, open alerts, limits reached


def queries(client: Client, address: str) -> list[str]:
    with CaptureQueriesContext(connection) as caught:
        assert client.get(address).status_code == 200
    return [query["sql"] for query in caught.captured_queries]


def test_the_fleet_asks_as_much_for_twelve_models_as_for_three(signed_in: Client, project: Project, alert: Alert) -> None:
    three = queries(signed_in, "/p/ranking/")
    for number in range(9):
        model(project, f"model-{number}", [Shape("1", 0.01, 50, 900), Shape("2", 0.01, 50, 300)], every=120)
    twelve = queries(signed_in, "/p/ranking/")
    assert len(twelve) == len(three)
    assert len(three) <= FRAME + 10, three


def test_the_other_pages_ask_few_questions(signed_in: Client, alert: Alert) -> None:
    for address in (
        "/p/ranking/alerts/",
        "/p/ranking/alerts/grades/",
        f"/p/ranking/alerts/{alert.number}/",
        "/p/ranking/setup/",
        "/p/ranking/settings/judging/",
        "/p/ranking/settings/messages/",
    ):
        asked = queries(signed_in, address)
        assert len(asked) <= FRAME + 10, asked


def test_the_judging_page_asks_as_much_for_many_models_and_choices_as_for_few(signed_in: Client, project: Project, alert: Alert) -> None:
    address = f"/p/ranking/settings/judging/?model={alert.deployment.model_id}"
    few = queries(signed_in, address)
    for number in range(9):
        one = model(project, f"model-{number}", [Shape("1", 0.01, 50, 60)], every=60)
        judging_set(project=project, model=one, values={"p50.muted": True, "watch_alpha": 0.1}, actor_name="tests")
    assert len(queries(signed_in, address)) == len(few)
