"""Two deployments that late data shows to be one: their alerts become those of the one that is
kept."""

from __future__ import annotations

from typing import Any

from dashboard.alerts.models import Alert, AlertOutcome, AlertState
from dashboard.alerts.services.transitions import alert_close, lock_project
from dashboard.fleet.models import Deployment


def alerts_repoint(sender: type[Deployment], gone: Deployment, kept: Deployment, **_: Any) -> None:
    """Where both have an open alert of the same cause, that of the deployment that is kept goes on;
    the other closes with its messages."""
    lock_project(
        kept.project_id
    )  # Before the alerts are read: a person or the judge may be changing them.
    open_now = {
        alert.cause: alert
        for alert in Alert.objects.filter(deployment=kept).exclude(state=AlertState.RESOLVED)
    }
    for alert in Alert.objects.filter(deployment=gone).order_by("pk"):
        alert.deployment = kept
        other = open_now.get(alert.cause)
        if other is None or alert.state == AlertState.RESOLVED:
            alert.save(update_fields=["deployment"])
        else:  # Moved as it closes: a deployment has one open alert of a cause.
            text = (
                f"Late data shows that this deployment and that of A-{other.number} are one; "
                f"A-{other.number} goes on."
            )
            alert_close(alert=alert, outcome=AlertOutcome.STOPPED, text=text)
