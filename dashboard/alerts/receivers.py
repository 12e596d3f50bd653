"""Accepted versions: when a person accepts a version as the new baseline, its alerts close with the
text of the note."""

from __future__ import annotations

from typing import Any

from dashboard.accounts.models import User
from dashboard.alerts.models import Alert, AlertCause, AlertOutcome, AlertState
from dashboard.alerts.services.transitions import alert_close, lock_project
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
        alert_close(
            alert=alert, outcome=AlertOutcome.ACCEPTED, text=text, actor_name=actor.get_username()
        )
