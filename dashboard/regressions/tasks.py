"""The judge's task: fetch, call the service, nudge the next stage."""

from celery import shared_task

from dashboard.common.nudge import nudge
from dashboard.regressions.services import deployments_judge


@shared_task(name="dashboard.regressions.tasks.judge")
def judge() -> None:
    """Judges what has new minutes."""
    if deployments_judge():
        nudge("dashboard.alerts.tasks.sweep")
