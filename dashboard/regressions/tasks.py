"""The judge's task: fetch, call the service, nudge the next stage."""

from celery import shared_task

from dashboard.common.jobs import job_run
from dashboard.common.nudge import nudge
from dashboard.pipeline import every
from dashboard.regressions.services import deployments_judge


@shared_task(name="dashboard.regressions.tasks.judge")
def judge(swept: bool = False) -> None:
    """Judges what has new minutes."""
    if job_run(name="judge", interval=every("judge"), job=deployments_judge, nudged=not swept):
        nudge("dashboard.alerts.tasks.sweep")
