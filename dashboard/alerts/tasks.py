"""The tasks of this stage."""

from celery import shared_task

from dashboard.alerts.services import alerts_sweep, deliveries_send
from dashboard.common.nudge import nudge


@shared_task
def sweep() -> None:
    """Lets alerts follow the verdicts, then sends what is owed."""
    if alerts_sweep():
        nudge("dashboard.alerts.tasks.deliver")


@shared_task
def deliver() -> None:
    """Sends what is owed."""
    deliveries_send()
