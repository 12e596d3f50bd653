"""When late data joins two deployments, the verdicts and alerts of both are kept."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
from compilewatch.wire.messages import Request

from dashboard.alerts import receivers
from dashboard.alerts.models import Alert, AlertState, Channel, Delivery, DeliveryKind
from dashboard.alerts.services.transitions import lock_project
from dashboard.common import clock
from dashboard.fleet.fold_service import fold_all
from dashboard.fleet.models import Deployment
from dashboard.regressions.models import Comparison, Verdict

MINUTE = 29_833_333
NOW = (MINUTE + 1) * 60.0 + 5

pytestmark = pytest.mark.django_db


@pytest.fixture
def send(
    make_request: Callable[..., Request],
    store_reports: Callable[..., object],
    monkeypatch: pytest.MonkeyPatch,
) -> Callable[..., None]:
    """`send(first, last)` sends one report per minute, from its own instance."""
    monkeypatch.setattr(clock, "unix", lambda: NOW)

    def send(first: int, last: int) -> None:
        request = make_request(
            instance=last + 1000, minutes=last - first + 1, end=(MINUTE + last + 1) * 60.0
        )
        store_reports(replace(request, sent=NOW))
        fold_all()

    return send


def verdict(deployment: Deployment, kind: str, **fields: Any) -> Verdict:
    """A verdict about a deployment."""
    common = {
        "project_id": deployment.project_id,
        "deployment": deployment,
        "kind": kind,
        "sentence": kind,
        "evidence": {},
        "minute": 1,
    }
    return Verdict.objects.create(**common, created_at=clock.now(), **fields)


def alert(deployment: Deployment, number: int, verdict: Verdict, state: str = "open") -> Alert:
    """An alert about a deployment."""
    common = {
        "severity": "roll_back",
        "worst": "roll_back",
        "title": "slow",
        "opened_at": clock.now(),
    }
    return Alert.objects.create(
        project_id=deployment.project_id,
        deployment=deployment,
        number=number,
        verdict=verdict,
        state=state,
        **common,
    )


def test_verdicts_and_alerts_of_both_belong_to_the_kept_deployment(
    send: Callable[..., None],
) -> None:
    send(-120, -100)
    send(-20, 0)
    old, new = Deployment.objects.order_by("started_minute")
    said_old = [verdict(old, "watch", current=False), verdict(old, "roll_back")]
    said_new = verdict(new, "healthy", baseline=old)
    Comparison.objects.create(project_id=old.project_id, deployment=old)
    first, second, closed = (
        alert(old, 1, said_old[1]),
        alert(new, 2, said_new),
        alert(old, 3, said_old[0], state="resolved"),
    )

    send(-80, -45)

    assert Deployment.objects.get() == new
    assert set(Verdict.objects.filter(deployment=new)) == {*said_old, said_new}
    assert Verdict.objects.get(deployment=new, current=True) == said_new
    assert Verdict.objects.get(pk=said_new.pk).baseline == new
    assert Comparison.objects.get().deployment == new
    assert set(Alert.objects.filter(deployment=new)) == {first, second, closed}
    assert Alert.objects.exclude(state=AlertState.RESOLVED).get() == second
    assert "A-2 continues" in first.events.get().text


def test_an_alert_of_the_older_deployment_continues_when_the_other_has_none(
    send: Callable[..., None],
) -> None:
    send(-120, -100)
    send(-20, 0)
    old, new = Deployment.objects.order_by("started_minute")
    only = alert(old, 1, verdict(old, "roll_back"))
    send(-80, -45)
    only.refresh_from_db()
    assert (only.deployment, only.state) == (new, "open")
    assert Verdict.objects.get(deployment=new, current=True).kind == "roll_back"


def test_channels_that_got_the_ended_alert_are_notified_of_its_end(
    send: Callable[..., None], monkeypatch: pytest.MonkeyPatch
) -> None:
    send(-120, -100)
    send(-20, 0)
    old, new = Deployment.objects.order_by("started_minute")
    gone = alert(old, 1, verdict(old, "roll_back"))
    alert(new, 2, verdict(new, "roll_back"))
    now = clock.now()
    channel = Channel.objects.create(
        project_id=old.project_id,
        name="on call",
        kind="webhook",
        address="https://example.com/",
        created_at=now,
    )
    fields = {
        "message_id": "opened",
        "facts": {},
        "state": "delivered",
        "next_attempt_at": now,
        "created_at": now,
    }
    Delivery.objects.create(
        project_id=old.project_id, channel=channel, alert=gone, kind=DeliveryKind.OPENED, **fields
    )
    held: list[int] = []
    monkeypatch.setattr(
        receivers,
        "lock_project",
        lambda project_id: (held.append(project_id), lock_project(project_id)),
    )

    send(-80, -45)

    gone.refresh_from_db()
    assert (gone.state, gone.outcome, gone.deployment) == (AlertState.RESOLVED, "stopped", new)
    assert Delivery.objects.filter(alert=gone, kind=DeliveryKind.RESOLVED).count() == 1
    assert held == [old.project_id]
