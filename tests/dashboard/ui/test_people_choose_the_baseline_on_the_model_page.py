"""Operators pin or accept a version on the Model page; everybody reads who did, when and why."""

from __future__ import annotations

from collections.abc import Callable

from django.test import Client

from dashboard.alerts.models import Alert
from dashboard.projects.models import Role
from dashboard.regressions.models import BaselineChoice


def address(alert: Alert, part: str = "") -> str:
    return f"/p/ranking/models/{alert.deployment.model_id}/{part}"


def choose(client: Client, alert: Alert, **given: str) -> str:
    told = {
        "environment": "production",
        "version": alert.deployment.version.name,
        "kind": "pin",
        **given,
    }
    return client.post(address(alert, "baseline/"), told, follow=True).content.decode()


def test_a_pin_is_shown_with_who_and_why_and_can_be_ended(
    as_role: Callable[[Role], Client], alert: Alert
) -> None:
    client = as_role(Role.OPERATOR)
    earlier = alert.deployment.model.versions.exclude(pk=alert.deployment.version_id).first()
    assert earlier
    page = choose(client, alert, version=earlier.name, note="before the <b>rewrite</b>")
    assert f"{earlier.name} pinned" in page
    assert "<b>Baseline pinned</b>" in page
    assert "before the &lt;b&gt;rewrite&lt;/b&gt;" in page
    assert "operator-person" in page
    choice = BaselineChoice.objects.get()
    page = client.post(address(alert, f"baseline/{choice.pk}/end/"), follow=True).content.decode()
    assert "The baseline is selected automatically again." in page
    assert "<b>Baseline pinned</b>" not in page


def test_an_accepted_version_says_so_beside_its_verdict(
    as_role: Callable[[Role], Client], alert: Alert
) -> None:
    page = choose(as_role(Role.OPERATOR), alert, kind="accept", note="more work per call")
    assert "<b>Accepted as the new normal</b> by <bdi>operator-person</bdi>" in page
    assert "more work per call" in page
    assert "ROLL BACK" in page
    alert.refresh_from_db()
    assert alert.outcome == "accepted"
    story = as_role(Role.VIEWER).get(f"/p/ranking/alerts/{alert.number}/").content.decode()
    assert "accepted as the new normal" in story
    assert "The new normal" in story
    assert "Roll back guide" not in story


def test_the_fleet_says_that_it_is_accepted_and_puts_it_after_what_asks_for_somebody(
    as_role: Callable[[Role], Client], alert: Alert
) -> None:
    client = as_role(Role.OPERATOR)
    accepted, watched = (
        f"<bdi>{alert.deployment.model.name}</bdi></a>",
        "<bdi>llm-7b-chat</bdi></a>",
    )
    before = client.get("/p/ranking/").content.decode()
    assert before.index(accepted) < before.index(watched)
    choose(client, alert, kind="accept", note="more work per call")
    after = client.get("/p/ranking/").content.decode()
    assert after.index(watched) < after.index(accepted)
    assert '<span class="tag line">accepted</span>' in after


def test_what_cannot_be_chosen_is_said(as_role: Callable[[Role], Client], alert: Alert) -> None:
    page = choose(as_role(Role.OPERATOR), alert, version="nobody's")
    assert "There is no version" in page
    assert not BaselineChoice.objects.exists()


def test_a_viewer_reads_and_finds_no_form(as_role: Callable[[Role], Client], alert: Alert) -> None:
    choose(as_role(Role.OPERATOR), alert, kind="accept", note="more work per call")
    page = as_role(Role.VIEWER).get(address(alert)).content.decode()
    assert "more work per call" in page
    assert "/baseline/" not in page
