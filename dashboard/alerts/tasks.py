"""The tasks of this stage."""

from celery import shared_task

from dashboard.alerts.services import alerts_sweep, deliveries_send
from dashboard.common.jobs import job_run
from dashboard.common.nudge import nudge
from dashboard.pipeline import every


@shared_task
def sweep(swept: bool = False) -> None:
    """Lets alerts follow the verdicts, then sends what is owed."""
    if job_run(name="alert", interval=every("alert"), job=alerts_sweep, nudged=not swept):
        nudge("dashboard.alerts.tasks.deliver")


@shared_task
def deliver(swept: bool = False) -> None:
    """Sends what is owed."""
    job_run(name="deliver", interval=every("deliver"), job=deliveries_send, nudged=not swept)
