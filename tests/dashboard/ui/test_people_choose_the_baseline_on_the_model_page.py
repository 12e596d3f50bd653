"""Operators pin or accept a version on the Model page; all members see the author, the time and the
reason."""

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


def test_a_pin_is_shown_with_its_author_and_reason_and_can_be_ended(
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


def test_an_accepted_version_is_marked_next_to_its_verdict(
    as_role: Callable[[Role], Client], alert: Alert
) -> None:
    page = choose(as_role(Role.OPERATOR), alert, kind="accept", note="more work per call")
    assert "<b>Accepted as new baseline</b> by <bdi>operator-person</bdi>" in page
    assert "more work per call" in page
    assert "ROLL BACK" in page
    alert.refresh_from_db()
    assert alert.outcome == "accepted"
    story = as_role(Role.VIEWER).get(f"/p/ranking/alerts/{alert.number}/").content.decode()
    assert "accepted as new baseline" in story
    assert "Accepted baseline" in story
    assert "Rollback runbook" not in story


def test_the_fleet_marks_an_accepted_version_and_sorts_it_below_models_that_need_action(
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


def test_an_unknown_version_is_refused_with_a_reason(
    as_role: Callable[[Role], Client], alert: Alert
) -> None:
    page = choose(as_role(Role.OPERATOR), alert, version="missing")
    assert "production has no version &#x27;missing&#x27;: choose a version" in page
    assert not BaselineChoice.objects.exists()


def test_a_viewer_sees_the_choice_without_a_form(
    as_role: Callable[[Role], Client], alert: Alert
) -> None:
    choose(as_role(Role.OPERATOR), alert, kind="accept", note="more work per call")
    page = as_role(Role.VIEWER).get(address(alert, "versions/")).content.decode()
    assert "more work per call" in page
    assert "/baseline/" not in page
