"""The 28-day trend of the whole fleet: models that are better or worse than in the four weeks
before."""

from __future__ import annotations

import csv
from datetime import timedelta

import pytest
from django.core.cache import cache
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext

from dashboard.alerts.models import Alert, AlertOutcome, AlertState
from dashboard.common import clock
from dashboard.fleet.models import Deployment, VersionHour, WatchedModel
from dashboard.projects.models import Project
from dashboard.ui.pages.period_comparison.queries_fleet import CACHE_TTL_S
from dashboard.vocabulary.numbers import duration
from tests.dashboard.ui.weeks_story import weeks

pytestmark = pytest.mark.django_db
ADDRESS = "/p/ranking/weeks"


def page(client: Client, query: str = "", **headers: str) -> str:
    answer = client.get(f"{ADDRESS}/{query}", headers=headers)
    assert answer.status_code == 200
    return answer.content.decode()


def fleet(project: Project) -> dict[str, WatchedModel]:
    return {
        "faster": weeks(project, lambda ago: 0.0111 if ago <= 28 else 0.0121, name="faster"),
        "slower": weeks(project, lambda ago: 0.0131 if ago <= 28 else 0.0121, name="slower"),
        "steady": weeks(project, lambda ago: 0.0121, name="steady"),
        "young": weeks(project, lambda ago: 0.0121, name="young", days=10),
        "moved": weeks(
            project,
            lambda ago: 0.012,
            name="moved",
            gpu=lambda ago: "NVIDIA H200" if ago <= 28 else "NVIDIA H100",
        ),
    }


def test_models_are_counted_by_result_and_worse_models_come_first(
    signed_in: Client, project: Project
) -> None:
    fleet(project)
    html = page(signed_in)
    assert (
        "5\u00a0models: 1 worse, 1 better, 1 no change, 1 not comparable, 1 with too little history."
        in html
    )
    assert (
        html.index("<bdi>slower</bdi>")
        < html.index("<bdi>faster</bdi>")
        < html.index("<bdi>steady</bdi>")
    )
    assert "2 models not compared" in html


def test_the_row_of_a_model_matches_the_page_of_the_model(
    signed_in: Client, project: Project
) -> None:
    models = fleet(project)
    rows = {row["model"]: row for row in signed_in.get(f"{ADDRESS}.json").json()["rows"]}
    for name, model in models.items():
        own = signed_in.get(f"/p/ranking/models/{model.pk}/weeks.json").json()
        assert (rows[name]["answer"], rows[name]["sentence"]) == (
            own["answer"],
            own["sentences"][0],
        )
    faster, html = rows["faster"], page(signed_in)
    for side in ("before", "after"):
        assert duration(faster[f"p50_{side}_seconds"]) in html
    assert faster["p50_change_ratio"] == pytest.approx(
        faster["p50_after_seconds"] / faster["p50_before_seconds"] - 1
    )
    assert (
        rows["steady"]["served_after_share"] is None
        or 0 <= rows["steady"]["served_after_share"] <= 1
    )


def test_roll_back_alerts_of_all_models_are_counted_without_false_positives(
    signed_in: Client, project: Project
) -> None:
    models, today = fleet(project), int(clock.unix() // 86400)
    told = [
        ("faster", 3, ""),
        ("slower", 30, ""),
        ("steady", 40, AlertOutcome.ROLLED_BACK),
        ("steady", 41, AlertOutcome.DISMISSED),
    ]
    for number, (name, ago, outcome) in enumerate([*told, ("slower", 70, ""), ("slower", 0, "")]):
        Alert.objects.create(
            project=project, deployment=Deployment.objects.get(model=models[name]), number=number, cause=f"cause {number}",
            state=AlertState.RESOLVED, severity="roll_back", worst="roll_back", title="t",
            opened_at=clock.at_minute((today - ago) * 1440 + 60), outcome=outcome,
        )  # fmt: skip
    assert (
        "1\u00a0ROLL BACK alert instead of 2, with 4\u00a0deployments before and 1 since."
        in page(signed_in)
    )


def test_alert_counts_are_not_compared_with_weeks_without_data(
    signed_in: Client, project: Project
) -> None:
    weeks(project, lambda ago: 0.0121, name="young", days=10)
    html = page(signed_in)
    assert "1\u00a0model: 1 with too little history." in html
    assert "ROLL BACK alert" not in html


def test_one_environment_shows_the_models_that_have_calls_there(
    signed_in: Client, project: Project
) -> None:
    fleet(project)
    assert "5\u00a0models:" in page(signed_in, "?env=production")
    assert "No calls in the last 56 days." in page(signed_in, "?env=canary")


def test_the_fleet_page_loads_the_part_and_links_to_the_page(
    signed_in: Client, project: Project
) -> None:
    fleet(project)
    html = signed_in.get("/p/ranking/?env=production").content.decode()
    assert f'hx-get="{ADDRESS}/?env=production"' in html
    part = page(signed_in, **{"HX-Request": "true"})
    assert '<p class="answer">5\u00a0models:' in part
    assert "<html" not in part


def test_an_empty_project_does_not_load_the_part(signed_in: Client, project: Project) -> None:
    assert ADDRESS not in signed_in.get("/p/ranking/").content.decode()
    assert "No calls in the last 56 days." in page(signed_in)


def test_files_have_one_row_per_model(signed_in: Client, project: Project) -> None:
    fleet(project)
    lines = list(csv.reader(signed_in.get(f"{ADDRESS}.csv").content.decode().splitlines()))
    assert lines[0][:3] == ["model", "environment", "answer"]
    assert [line[0] for line in lines[1:3]] == ["slower", "faster"]


def select_queries(client: Client) -> list[str]:
    """The SELECT queries of one request for the page."""
    with CaptureQueriesContext(connection) as caught:
        page(client)
    return [query["sql"] for query in caught.captured_queries if query["sql"].startswith("SELECT")]


def test_the_number_of_queries_does_not_grow_with_the_models(
    signed_in: Client, project: Project
) -> None:
    counts = []
    for name in ("first", "second"):
        cache.clear()
        weeks(project, lambda ago: 0.012, name=name)
        counts.append(len(select_queries(signed_in)))
    assert counts[0] == counts[1]


def test_sums_of_past_days_are_cached_for_fifteen_minutes(
    signed_in: Client, project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    models = fleet(project)
    first, said = select_queries(signed_in), signed_in.get(f"{ADDRESS}.json").json()
    VersionHour.objects.filter(series__version__model=models["slower"]).update(p50=0.5, p99=0.5)
    second = select_queries(signed_in)
    hours = VersionHour._meta.db_table
    assert [hours in " ".join(queries) for queries in (first, second)] == [True, False]
    assert signed_in.get(f"{ADDRESS}.json").json() == said
    monkeypatch.setattr(
        "django.core.cache.backends.db.tz_now",
        lambda: clock.now() + timedelta(seconds=CACHE_TTL_S + 60),
    )
    assert signed_in.get(f"{ADDRESS}.json").json() != said


def test_a_project_without_calls_is_not_cached(signed_in: Client, project: Project) -> None:
    assert "No calls in the last 56 days." in page(signed_in)
    weeks(project, lambda ago: 0.012, name="first")
    assert "1\u00a0model:" in page(signed_in)


def test_a_user_without_membership_gets_no_page(client: Client, project: Project) -> None:
    assert client.get(f"{ADDRESS}/").status_code == 302
