"""The list of alerts is filtered by verdict, state, model, owner, environment, time and text; the
JSON and the CSV follow the same filters."""

from __future__ import annotations

import csv
import io
import re
from datetime import timedelta
from html import unescape

import pytest
from django.test import Client

from dashboard.accounts.models import User
from dashboard.alerts.models import Alert, AlertState
from dashboard.common import clock
from dashboard.projects.models import Project
from tests.dashboard.ui.factory import Shape, model, now_minute


@pytest.fixture
def alerts(project: Project, alert: Alert, user: User) -> dict[str, int]:
    """A ROLL BACK, one of ada in another model, an old one in staging, and a resolved one."""
    other = model(project, "vision", [Shape("1", 0.01, 5, 60)], every=60)
    deployment = other.deployments.get()
    found = {"bad": alert.number}
    for place, (name, given) in enumerate(
        {
            "mine": {"state": AlertState.ACKNOWLEDGED, "owner": user},
            "old": {"opened_at": clock.now() - timedelta(days=20)},
            "over": {"state": AlertState.RESOLVED, "resolved_at": clock.now()},
        }.items()
    ):
        staging = type(deployment).objects.create(
            project=project,
            model=other,
            version=deployment.version,
            environment=f"staging-{place}" if name != "old" else "staging",
            started_minute=now_minute() - 60,
            last_minute=now_minute(),
        )
        known = {
            "project": project, "deployment": staging, "number": 500 + place, "severity": "watch",
            "worst": "watch", "title": f"vision 1: {name}", "opened_at": clock.now(),
        }  # fmt: skip
        Alert.objects.create(**(known | given))
        found[name] = 500 + place
    return found


def listed(client: Client, query: str) -> set[int]:
    html = client.get(f"/p/ranking/alerts/?{query}").content.decode()
    return {int(one) for one in re.findall(r'<a class="t" href="/p/ranking/alerts/(\d+)/"', html)}


@pytest.mark.parametrize(
    ("query", "names"),
    [
        ("", "bad mine old"),
        ("state=all", "bad mine old over"),
        ("state=resolved", "over"),
        ("state=open", "bad old"),
        ("verdict=roll_back", "bad"),
        ("owner=me", "mine"),
        ("owner=none", "bad old"),
        ("owner=ada", "mine"),
        ("env=staging", "old"),
        ("env=nowhere", ""),
        ("days=7", "bad mine"),
        ("q=vision", "mine old"),
        ("q=A-418", "bad"),
        ("q=recompile+limit", "bad"),
        ("q=ada", "mine"),
        ("state=x&verdict=x&days=x&model=x", "bad mine old"),
        ("verdict=watch&days=7&state=all", "mine over"),
    ],
)
def test_each_filter_shows_its_alerts(
    signed_in: Client, alerts: dict[str, int], query: str, names: str
) -> None:
    expected = {alerts[name] for name in names.split()}
    assert listed(signed_in, query) == expected
    found = signed_in.get(f"/p/ranking/alerts.json?{query}").json()["alerts"]
    assert {row["number"] for row in found} == expected
    text = signed_in.get(f"/p/ranking/alerts.csv?{query}").content.decode()
    assert {int(row["number"]) for row in csv.DictReader(io.StringIO(text))} == expected


def test_a_model_is_filtered_and_its_chip_removes_the_filter(
    signed_in: Client, alerts: dict[str, int]
) -> None:
    one = Alert.objects.get(number=alerts["mine"]).deployment.model_id
    query = f"model={one}&verdict=watch"
    html = unescape(signed_in.get(f"/p/ranking/alerts/?{query}").content.decode())
    assert listed(signed_in, query) == {alerts["mine"], alerts["old"]}
    assert "Model: vision" in html and "Verdict: WATCH" in html
    assert 'href="?verdict=watch" aria-label="Remove the filter Model: vision"' in html
    assert f'href="?model={one}" aria-label="Remove the filter Verdict: WATCH"' in html
    assert f'/alerts.csv?{query}"' in html


def test_a_filter_without_alerts_offers_all_of_them(
    signed_in: Client, alerts: dict[str, int]
) -> None:
    html = signed_in.get("/p/ranking/alerts/?q=<script>").content.decode()
    assert "No matching alerts" in html and '<script>"' not in html
    assert "Text: &lt;script&gt;" in html


def test_saved_views_mark_the_current_one(signed_in: Client, alerts: dict[str, int]) -> None:
    html = signed_in.get("/p/ranking/alerts/?owner=me").content.decode()
    assert re.search(r'href="\?owner=me" aria-current="page">Mine\s*<span class="count">1<', html)


def test_the_filters_cost_a_fixed_number_of_queries(
    signed_in: Client, alerts: dict[str, int], django_assert_max_num_queries: object
) -> None:
    with django_assert_max_num_queries(8):  # type: ignore[operator]
        signed_in.get("/p/ranking/alerts/?q=vision&owner=me&days=7&verdict=watch&env=staging")
