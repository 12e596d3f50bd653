"""Two deployments that late data shows to be one: their alerts become those of the one that is kept."""

from __future__ import annotations

from typing import Any

from dashboard.alerts.models import Alert, AlertOutcome, AlertState, EventKind
from dashboard.alerts.services.transition import event_add
from dashboard.common import clock
from dashboard.fleet.models import Deployment


def alerts_repoint(sender: type[Deployment], gone: Deployment, kept: Deployment, **_: Any) -> None:
    """Where both have an open alert of the same cause, the one of the deployment that is kept goes on."""
    open_now = {alert.cause: alert for alert in Alert.objects.filter(deployment=kept).exclude(state=AlertState.RESOLVED)}
    for alert in Alert.objects.filter(deployment=gone).order_by("pk"):
        other = open_now.get(alert.cause)
        if other is not None and alert.state != AlertState.RESOLVED:
            alert.state, alert.outcome, alert.resolved_at = AlertState.RESOLVED, AlertOutcome.STOPPED, clock.now()
            text = f"Late data shows that this deployment and that of A-{other.number} are one; A-{other.number} goes on."
            event_add(alert=alert, kind=EventKind.RESOLVED, text=text)
        alert.deployment = kept
        alert.save(update_fields=["deployment", "state", "outcome", "resolved_at"])
