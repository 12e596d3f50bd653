"""Fleet, alerts and grades as JSON and CSV: the rows of the page, for members only, and without
formulas for a spreadsheet."""

from __future__ import annotations

import csv
import io
from collections.abc import Callable

from django.test import Client

from dashboard.accounts.models import User
from dashboard.alerts.models import Alert
from dashboard.fleet.models import WatchedModel
from dashboard.projects.models import Project, Role
from dashboard.vocabulary.numbers import level

TABLES = ("fleet", "alerts", "alerts/grades")


def table(client: Client, name: str) -> list[dict[str, str]]:
    answer = client.get(f"/p/ranking/{name}.csv")
    assert answer.status_code == 200 and "attachment" in answer["Content-Disposition"]
    return list(csv.DictReader(io.StringIO(answer.content.decode())))


def test_the_files_have_the_rows_of_each_page(signed_in: Client, alert: Alert) -> None:
    models = signed_in.get("/p/ranking/fleet.json").json()["models"]
    assert [(one["model"], one["verdict"]) for one in models] == [
        ("ranker", "roll_back"),
        ("llm-7b-chat", "watch"),
        ("vit-embed", "healthy"),
    ]
    page = signed_in.get("/p/ranking/").content.decode()
    assert (
        models[0]["sentence"]
        and level(models[0]["changes"][0]["candidate"], "s") in page
        and models[0]["alerts"] == [alert.number]
    )
    assert [row["model"] for row in table(signed_in, "fleet")] == [one["model"] for one in models]
    [one] = signed_in.get("/p/ranking/alerts.json").json()["alerts"]
    assert (one["number"], one["state"], one["model"]) == (alert.number, "open", "ranker")
    assert table(signed_in, "alerts")[0]["title"] == one["title"]
    grades = signed_in.get("/p/ranking/alerts/grades.json").json()
    assert (
        sum(row["total"] for row in grades["verdicts"])
        == sum(row["count"] for row in grades["ends"])
        == 1
    )
    assert len(table(signed_in, "alerts/grades")) == len(grades["verdicts"])


def test_the_files_are_for_members_only_and_contain_no_formula(
    signed_in: Client, alert: Alert, make_user: Callable[..., User], other_project: Project
) -> None:
    WatchedModel.objects.filter(name="vit-embed").update(name="=HYPERLINK(1)")
    assert "'=HYPERLINK(1)" in [row["model"] for row in table(signed_in, "fleet")]
    stranger = Client()
    stranger.force_login(make_user("stranger", other_project, Role.ADMIN))
    for name in TABLES:
        for ending in ("json", "csv"):
            assert stranger.get(f"/p/ranking/{name}.{ending}").status_code == 404
            assert Client().get(f"/p/ranking/{name}.{ending}").status_code == 302


def test_each_page_links_to_its_files_with_its_filters(signed_in: Client, alert: Alert) -> None:
    for page, query in (("", "?verdict=watch"), ("alerts/", "?state=open"), ("alerts/grades/", "")):
        html = signed_in.get(f"/p/ranking/{page}{query}").content.decode()
        name = page.rstrip("/") or "fleet"
        for ending in ("json", "csv"):
            assert f'href="/p/ranking/{name}.{ending}{query}"' in html
            assert signed_in.get(f"/p/ranking/{name}.{ending}{query}").status_code == 200
