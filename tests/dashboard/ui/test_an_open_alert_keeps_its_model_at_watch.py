"""An open alert keeps the last bad verdict on every page, in the API, in /metrics and in the gate
until the alert ends."""

from __future__ import annotations

from datetime import timedelta
from html import unescape
from typing import Any

import pytest
from django.test import Client

from dashboard.accounts.models import User
from dashboard.alerts.current_verdict import resolve_current_verdict
from dashboard.alerts.models import Alert, AlertState
from dashboard.alerts.services import alert_resolve, alerts_sync
from dashboard.common import clock
from dashboard.fleet.models import Deployment
from dashboard.projects.models import Project
from dashboard.regressions.models import Verdict
from tests.dashboard.alerts.conftest import fleet, new, old, time
from tests.dashboard.alerts.fleet import Fleet, Time

__all__ = ["fleet", "new", "old", "time"]
pytestmark = pytest.mark.django_db

SENTENCE = "Ranks of one job diverged: rank 2 compiled `step` 1 more time than the 3 others: a collective inside can hang."
RANKS = {
    "kind": "ranks_diverged",
    "severity": "watch",
    "about": "step",
    "why": "Rank 2 compiled `step`",
    "instances": ["x"],
    "count": 1,
}
NOTHING_YET = "2026.11.3 is the first version seen here: no baseline yet."


@pytest.fixture
def opened(fleet: Fleet, new: Deployment, time: Time) -> Alert:
    """An alert about diverged ranks; its verdict became NOT ENOUGH DATA one hour later."""
    fleet.say(new, "watch", SENTENCE, rows=[], facts=[RANKS])
    alerts_sync()
    time.go(3660)
    fleet.say(new, "not_enough_data", NOTHING_YET, rows=[], facts=[])
    alerts_sync()
    Deployment.objects.update(last_minute=clock.minute_of(clock.unix()))
    return Alert.objects.get()


def shown(client: Client, address: str) -> str:
    answer = client.get(address)
    assert answer.status_code == 200, address
    return unescape(answer.content.decode()).replace("\xa0", " ")


def places(new: Deployment) -> list[str]:
    model = f"/p/ranking/models/{new.model_id}"
    return [
        "/p/ranking/",
        f"{model}/?version={new.version_id}",
        f"{model}/compiles/?version={new.version_id}",
        "/p/ranking/alerts/1/",
    ]


def test_every_page_shows_the_last_known_verdict_and_its_start(
    signed_in: Client, opened: Alert, new: Deployment
) -> None:
    assert opened.state == AlertState.OPEN
    for address in places(new):
        text = shown(signed_in, address)
        assert "badge watch" in text, address
        assert "last known <time" in text and "not enough data now; A-1 is open" in text, address
        assert "first version seen here" not in text.split('id="tl"')[0], address


def test_the_api_and_files_have_the_same_verdict(
    signed_in: Client, client: Client, api_key: str, opened: Alert, new: Deployment
) -> None:
    reads = {"authorization": f"Bearer {api_key}"}
    row = next(
        row
        for row in signed_in.get("/p/ranking/fleet.json").json()["models"]
        if row["model"] == "ranker"
    )
    assert (row["verdict"], row["sentence"]) == ("watch", SENTENCE)
    kept = Verdict.objects.get(sentence=SENTENCE)
    base = "/api/v1/projects/ranking"
    of_versions = client.get(
        f"{base}/models/{new.model_id}/versions?environment=prod", headers=reads
    ).json()["items"]
    verdicts = client.get(f"{base}/verdicts", headers=reads).json()["items"]
    only_watch = client.get(f"{base}/verdicts?kind=watch", headers=reads).json()["items"]
    for said in (
        next(one["verdict"] for one in of_versions if one["name"] == "2026.11.3"),
        *verdicts,
        *only_watch,
    ):
        assert (said["kind"], said["evaluated_now"], said["open_alert"], said["id"]) == (
            "watch",
            "not_enough_data",
            1,
            kept.pk,
        )
        assert clock.at_minute(kept.minute) == clock.at_minute(kept.minute).fromisoformat(
            said["last_known_at"]
        )
    assert len(verdicts) == len(only_watch) == 1
    assert not client.get(f"{base}/verdicts?kind=not_enough_data", headers=reads).json()["items"]
    gauge = 'compilewatch_version_verdict{environment="prod",model="ranker",project="ranking",verdict="watch",version="2026.11.3"} 1.0'
    assert gauge in client.get("/metrics", headers=reads).content.decode()
    asked: dict[str, Any] = {"model": "ranker", "version": "2026.11.3", "environment": "prod"}
    gate = client.get("/api/v1/gate", asked, headers=reads).json()
    assert (gate["state"], gate["verdict"]) == ("inconclusive", "watch")


def test_a_last_known_roll_back_fails_the_gate(
    client: Client, api_key: str, fleet: Fleet, new: Deployment, time: Time
) -> None:
    fleet.say(new, "roll_back", "Roll back 2026.11.3: p50 is 31% slower.")
    alerts_sync()
    time.go(3660)
    fleet.say(new, "not_enough_data")
    alerts_sync()
    asked: dict[str, Any] = {"model": "ranker", "version": "2026.11.3", "environment": "prod"}
    gate = client.get("/api/v1/gate", asked, headers={"authorization": f"Bearer {api_key}"}).json()
    assert (gate["state"], gate["verdict"]) == ("fail", "roll_back")


def test_the_last_known_verdict_ends_with_the_alert(
    signed_in: Client, opened: Alert, new: Deployment, make_user: Any, project: Project
) -> None:
    person: User = make_user("somebody", project)
    alert_resolve(alert=opened, user=person, note="seen")
    for address in places(new)[:3]:
        text = shown(signed_in, address)
        assert (
            "last known" not in text
            and "badge watch" not in text
            and "first version seen here" in text
        ), address


def test_acknowledged_and_snoozed_alerts_keep_the_last_known_verdict(
    signed_in: Client, opened: Alert, new: Deployment
) -> None:
    for state in (AlertState.ACKNOWLEDGED, AlertState.SNOOZED):
        Alert.objects.update(state=state, snoozed_until=clock.now() + timedelta(hours=1))
        assert "last known <time" in shown(signed_in, "/p/ranking/")


def test_a_deleted_verdict_is_replaced_by_the_text_of_the_alert(
    signed_in: Client, opened: Alert, new: Deployment
) -> None:
    Verdict.objects.filter(current=False).delete()
    for address in places(new):
        text = shown(signed_in, address)
        assert "badge watch" in text and "last known <time" in text, address


def test_an_alert_affects_only_its_own_version(
    signed_in: Client, opened: Alert, fleet: Fleet, old: Deployment
) -> None:
    fleet.say(old, "healthy", "No regression above 6%.")
    text = shown(signed_in, f"/p/ranking/models/{old.model_id}/compiles/?version={old.version_id}")
    assert "badge healthy" in text and "last known" not in text


def test_the_model_and_version_pages_link_to_the_alert_and_the_ranks(
    signed_in: Client, opened: Alert, new: Deployment
) -> None:
    for address in places(new)[1:3]:
        text = shown(signed_in, address)
        assert "Ranks of a job have diverged." in text, address
        assert (
            f'/models/{new.model_id}/ranks/?env=prod">Compare the ranks</a>' in text
            and '/alerts/1/">Alert A-1</a>' in text
        ), address


def test_the_silence_of_a_model_affects_each_live_version(
    signed_in: Client, api_key: str, fleet: Fleet, old: Deployment, new: Deployment, time: Time
) -> None:
    for one in (old, new):
        fleet.say(one, "healthy", f"{one.version.name} is fine.", rows=[])
    opened = clock.now()
    Alert.objects.create(
        project=old.project, deployment=old, number=7, cause="silence", state=AlertState.OPEN, severity="watch", worst="watch",
        title="ranker: 6 of 6 instances stopped reporting", opened_at=opened,
    )  # fmt: skip
    headers = {"authorization": f"Bearer {api_key}"}
    for one in (old, new):
        page = shown(
            signed_in, f"/p/ranking/models/{one.model_id}/startup/?version={one.version_id}"
        )
        assert "badge watch" in page and "badge healthy" not in page, one.version.name
    kinds = {
        item["kind"]
        for item in signed_in.get("/api/v1/projects/ranking/verdicts", headers=headers).json()[
            "items"
        ]
    }
    assert kinds == {"watch"}
    asked = {"model": "ranker", "version": new.version.name, "environment": new.environment}
    assert (
        Client()
        .get("/api/v1/gate", asked, headers=headers)
        .json()["alert_url"]
        .endswith("/alerts/7/")
    )
    metrics = Client().get("/metrics", headers=headers).content.decode()
    assert 'verdict="watch"' in metrics and 'verdict="healthy"' not in metrics
    Deployment.objects.filter(pk=old.pk).update(ended_minute=clock.minute_of(clock.unix()))
    ended = Verdict.objects.get(deployment=old, current=True)
    assert resolve_current_verdict(deployment_id=ended.deployment_id).kind == "healthy", (
        "a version that ended is not silent"
    )
