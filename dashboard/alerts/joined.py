"""Joined deployments: when late data shows that two deployments are one, their alerts move to the
deployment that is kept."""

from __future__ import annotations

from typing import Any

from dashboard.alerts.models import Alert, AlertOutcome, AlertState
from dashboard.alerts.services.transitions import alert_close, lock_project
from dashboard.fleet.models import Deployment


def alerts_repoint(sender: type[Deployment], gone: Deployment, kept: Deployment, **_: Any) -> None:
    """Moves alerts to the kept deployment. If both deployments have an open alert with the same
    cause, the alert of the kept one continues and the other is closed."""
    lock_project(
        kept.project_id
    )  # Lock before reading the alerts: a person or a verdict may be changing them.
    open_now = {
        alert.cause: alert
        for alert in Alert.objects.filter(deployment=kept).exclude(state=AlertState.RESOLVED)
    }
    for alert in Alert.objects.filter(deployment=gone).order_by("pk"):
        alert.deployment = kept
        other = open_now.get(alert.cause)
        if other is None or alert.state == AlertState.RESOLVED:
            alert.save(update_fields=["deployment"])
        else:  # alert_close saves the move: a deployment has at most one open alert per cause.
            text = (
                f"Late data shows that A-{other.number} is about the same deployment. "
                f"A-{other.number} continues."
            )
            alert_close(alert=alert, outcome=AlertOutcome.STOPPED, text=text)
