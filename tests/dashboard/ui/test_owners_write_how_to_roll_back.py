"""Settings > Roll back: the runbook that the owners of a model wrote is on the page of its alert
and in every notification, and the author is recorded."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from django.test import Client

from dashboard.accounts.models import AuditEntry
from dashboard.alerts.models import Alert, RollbackGuide
from dashboard.alerts.payloads import build_alert_payload
from dashboard.fleet.models import ModelVersion
from dashboard.projects.models import Project, Role
from tests.dashboard.ui.factory import Shape, model

PAGE = "/p/ranking/settings/guides/"
TEXT = "kubectl argo rollouts undo ranker\r\n# from {version} to {baseline}"
URL = "https://runbooks.example.com/ranker?leave={version}&to={baseline}"


def save(client: Client, alert: Alert, **given: object) -> tuple[int, str]:
    answer = client.post(
        f"{PAGE}save/",
        {"model": alert.deployment.model_id, "text": TEXT, "url": URL, **given},
        follow=True,
    )
    return answer.status_code, answer.content.decode()


def test_a_runbook_is_on_the_page_and_in_the_notification_until_it_is_removed(
    signed_in: Client, alert: Alert
) -> None:
    RollbackGuide.objects.all().delete()
    story = f"/p/ranking/alerts/{alert.number}/"
    written = signed_in.get(story).content.decode()
    assert ">Add steps</a>" in written and "kubectl rollout undo deployment/ranker" in written
    assert f'href="{PAGE}?model={alert.deployment.model_id}#write"' in written
    ModelVersion.objects.filter(pk=alert.deployment.version_id).update(name="2026.11.3 & #1")
    assert "The next notification about" in save(signed_in, alert)[1]
    alert = Alert.objects.get(pk=alert.pk)
    assert alert.verdict and alert.verdict.baseline
    before = alert.verdict.baseline.version.name
    shown = signed_in.get(story).content.decode()
    assert f"# from 2026.11.3 &amp; #1 to {before}" in shown
    assert (
        f'href="https://runbooks.example.com/ranker?leave=2026.11.3%20%26%20%231&amp;to={before}"'
        in shown
    )
    facts = build_alert_payload(alert=alert, verdict=alert.verdict)
    assert (
        facts["roll_back_guide"]
        == f"kubectl argo rollouts undo ranker\n# from 2026.11.3 & #1 to {before}"
    )
    assert (
        facts["links"]["roll_back_guide"]
        == f"https://runbooks.example.com/ranker?leave=2026.11.3%20%26%20%231&to={before}"
    )
    assert "No changes to save." in save(signed_in, alert)[1]
    assert save(signed_in, alert, text=" ", url="")[0] == 200
    assert not RollbackGuide.objects.exists()
    entries = list(AuditEntry.objects.filter(action="guide.set").order_by("pk"))
    assert [(one.actor_name, one.before["url"], one.after["url"]) for one in entries] == [
        ("ada", "", URL),
        ("ada", URL, ""),
    ]


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"url": "javascript:alert(1)"}, "Expected an address that starts with https://"),
        ({"url": "runbooks.example.com/x"}, "Expected an address that starts with https://"),
        ({"url": "https://ada:secret@example.com/"}, "contains no password"),
        ({"url": "https://[::1"}, "Expected an address that starts with https://"),
        ({"url": "https://example.com/a b"}, "Spaces and"),
        ({"url": "https://example.com/\u202egnp"}, "control characters are not allowed"),
        (
            {"url": "https://example.com/{candidate}"},
            "Unknown placeholder {candidate}, expected {version} or {baseline}.",
        ),
        ({"url": "https://example.com/" + "a" * 200}, "At most 200 characters."),
        ({"text": "a" * 2001}, "At most 2,000 characters."),
    ],
)
def test_an_invalid_runbook_is_reported_at_its_field_and_kept_in_the_form(
    given: dict[str, str], said: str, signed_in: Client, alert: Alert
) -> None:
    status, page = save(signed_in, alert, **given)
    assert (status, RollbackGuide.objects.filter(url=URL).exists()) == (400, False)
    assert page.count(said) == 2
    assert (
        "kubectl argo rollouts undo ranker" in page if "text" not in given else "a" * 2001 in page
    )


def test_the_form_is_for_the_requested_model_or_else_for_one_without_a_runbook(
    signed_in: Client, project: Project, other_project: Project, alert: Alert
) -> None:
    RollbackGuide.objects.create(
        project=other_project, model_name=alert.deployment.model.name, text="theirs"
    )
    page = signed_in.get(PAGE).content.decode()
    assert f'name="model" value="{alert.deployment.model_id}"' not in page
    assert "theirs" not in page
    assert (
        f'name="model" value="{alert.deployment.model_id}"'
        in signed_in.get(f"{PAGE}?model={alert.deployment.model_id}").content.decode()
    )
    foreign = model(other_project, "foreign", [Shape("1", 0.01, 5, 60)], every=60)
    assert signed_in.post(f"{PAGE}save/", {"model": foreign.pk, "text": "x"}).status_code == 404


def test_only_admins_write_runbooks(as_role: Callable[[Role], Client], alert: Alert) -> None:
    for role in (Role.VIEWER, Role.OPERATOR):
        client = as_role(role)
        assert "Ask an admin to edit runbooks." in client.get(PAGE).content.decode()
        assert save(client, alert)[0] == 403
