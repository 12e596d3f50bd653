"""A silent fleet is one banner and one line, and every verdict on old data states the age of the
data."""

from __future__ import annotations

from datetime import timedelta
from html import unescape

import pytest
from django.test import Client

from dashboard.alerts.models import Alert, AlertEvent
from dashboard.common import clock
from dashboard.fleet.models import Deployment, Instance
from dashboard.projects.models import Project
from dashboard.regressions.models import Verdict
from tests.dashboard.ui import factory

SHAPE = factory.Shape("1", p50=0.02, calls=40, start=200, instances=4)
QUIET = factory.Shape("1", p50=0.02, calls=40, start=200, instances=4, silent=4)


def shown(client: Client, address: str) -> str:
    answer = client.get(address)
    assert answer.status_code == 200, address
    return unescape(answer.content.decode()).replace("\xa0", " ")


def silent_fleet(project: Project, count: int, minutes: int = 16) -> None:
    for number in range(count):
        factory.model(project, f"model-{number:02}", [SHAPE], every=60)
    at = clock.now() - timedelta(minutes=minutes)
    Instance.objects.update(last_seen_at=at)
    Deployment.objects.update(last_minute=clock.minute_of(at.timestamp()))


def store_verdict(deployment: Deployment, kind: str) -> None:
    Verdict.objects.create(
        project_id=deployment.project_id, deployment=deployment, kind=kind, previous_kind=kind, sentence=f"It is {kind}.", evidence={},
        minute=deployment.last_minute, created_at=clock.now(),
    )  # fmt: skip


def alert_of(deployment: Deployment, cause: str, title: str) -> Alert:
    one = Alert.objects.create(
        project_id=deployment.project_id, deployment=deployment, number=7, cause=cause, severity="watch", worst="watch", title=title,
        opened_at=clock.now(), ran_on=[],
    )  # fmt: skip
    AlertEvent.objects.create(alert=one, at=clock.now(), kind="opened", text=f"{title}.")
    return one


def test_forty_silent_models_are_one_banner_and_one_line(
    signed_in: Client, project: Project
) -> None:
    silent_fleet(project, 40)
    text = shown(signed_in, "/p/ranking/")
    assert text.count('<section class="silence"') == 1
    assert (
        "160 of 160 instances of the fleet stopped reporting <time" in text
        and "network, dashboard or a deployment?" in text
    )
    lines = text.split('id="bl"')[1].split("</section>")[0]
    assert lines.count("<li>") == 1, "41 lines about one network would hide other blind spots"
    assert (
        "160 silent instances" in lines
        and "40 models: model-00 (4), model-01 (4), model-02 (4) and 37 more" in lines
    )


def test_the_banner_stays_after_half_an_hour_with_its_alert(
    signed_in: Client, project: Project
) -> None:
    silent_fleet(project, 3, minutes=45)
    alert_of(
        Deployment.objects.first(),
        "fleet_silence",
        "12 of 12 instances of the fleet stopped reporting",
    )  # type: ignore[arg-type]
    text = shown(signed_in, "/p/ranking/")
    assert text.count('<section class="silence"') == 1 and '/alerts/7/">Alert A-7</a>' in text
    assert text.count("1 open</a>") == 0, "the alert of a fleet belongs to no model"


def test_one_silent_model_is_a_banner_on_its_own_page_only(
    signed_in: Client, project: Project
) -> None:
    quiet = factory.model(project, "quiet", [QUIET], every=60)
    for name in ("busy", "busier"):
        factory.model(project, name, [SHAPE], every=60)
    assert '<section class="silence"' not in shown(signed_in, "/p/ranking/")
    assert "quiet: 4 of 4 instances stopped reporting" in shown(
        signed_in, f"/p/ranking/models/{quiet.pk}/"
    )


@pytest.mark.parametrize("kind", ["healthy", "roll_back"])
def test_a_verdict_on_old_data_states_the_age_on_every_page(
    signed_in: Client, project: Project, kind: str
) -> None:
    silent_fleet(project, 1)
    deployment = Deployment.objects.get()
    store_verdict(deployment, kind)
    model = f"/p/ranking/models/{deployment.model_id}"
    fleet = f"/p/ranking/?open={deployment.model_id}"
    for address in (fleet, f"{model}/", f"{model}/compiles/"):
        assert "stale: last data <time" in shown(signed_in, address), address
    Deployment.objects.update(last_minute=clock.minute_of(clock.unix()) - 2)
    assert "stale: last data" not in shown(signed_in, f"{model}/")


def test_metrics_and_tables_contain_the_age(
    client: Client, signed_in: Client, project: Project, api_key: str
) -> None:
    silent_fleet(project, 1)
    store_verdict(Deployment.objects.get(), "healthy")
    answer = client.get("/metrics", headers={"authorization": f"Bearer {api_key}"}).content.decode()
    line = next(
        line
        for line in answer.splitlines()
        if line.startswith("compilewatch_version_data_age_seconds{")
    )
    assert 15 * 60 <= float(line.split()[-1]) <= 17 * 60
    row = signed_in.get("/p/ranking/fleet.json").json()["models"][0]
    assert 15 <= row["stale_minutes"] <= 17


def test_an_alert_of_a_silent_model_keeps_it_at_watch(signed_in: Client, project: Project) -> None:
    silent_fleet(project, 1)
    deployment = Deployment.objects.get()
    store_verdict(deployment, "healthy")
    alert_of(deployment, "silence", "model-00: 4 of 4 instances stopped reporting")
    text = shown(signed_in, "/p/ranking/")
    assert (
        "badge watch" in text
        and "A-7 is open; last evaluated healthy" in text
        and "badge healthy" not in text
    )


@pytest.mark.parametrize(
    ("cause", "words"), [("silence", "model-00"), ("fleet_silence", "All models of")]
)
def test_the_alert_page_has_a_runbook_for_silence(
    signed_in: Client, project: Project, cause: str, words: str
) -> None:
    silent_fleet(project, 1)
    one = alert_of(Deployment.objects.get(), cause, "model-00: 4 of 4 instances stopped reporting")
    text = shown(signed_in, f"/p/ranking/alerts/{one.number}/")
    assert "Runbook: silence" in text and "compilewatch doctor" in text and words in text
    assert "No known cause yet" not in text and "Verdict now" not in text
    assert "Reporting instances" in text and "4 of 4 instances" in text
    assert ("All models</a>" in shown(signed_in, "/p/ranking/alerts/")) == (
        cause == "fleet_silence"
    )
