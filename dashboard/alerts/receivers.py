"""Signal receivers of alerts: they run in the sender's transaction."""

from __future__ import annotations

from typing import Any

from dashboard.accounts.models import User
from dashboard.accounts.services import audit_write
from dashboard.alerts.models import Alert, AlertCause, AlertOutcome, AlertState
from dashboard.alerts.services.actions import audit_subject, describe_state
from dashboard.alerts.services.transitions import alert_close, lock_project
from dashboard.fleet.models import Deployment
from dashboard.regressions.models import BaselineChoice


def close_accepted_alerts(
    sender: type[BaselineChoice], choice: BaselineChoice, actor: User, **_: Any
) -> None:
    """Closes the open alerts of this version in this environment. A new alert opens only if the
    version gets worse."""
    lock_project(choice.project_id)
    rows = Alert.objects.filter(
        deployment__version_id=choice.version_id,
        deployment__environment=choice.environment,
        cause=AlertCause.REGRESSION,
    )
    for alert in rows.exclude(state=AlertState.RESOLVED).order_by("pk"):
        text = f"Accepted as new baseline by {choice.chosen_by_name}: {choice.note}"
        before = describe_state(alert)
        alert_close(
            alert=alert, outcome=AlertOutcome.ACCEPTED, text=text, actor_name=actor.get_username()
        )
        audit_write(
            action="alert.accept",
            subject=audit_subject(alert),
            project_id=alert.project_id,
            actor=actor,
            before=before,
            after=describe_state(alert),
        )


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
