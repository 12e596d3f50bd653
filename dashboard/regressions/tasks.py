"""The judge's tasks: fetch, call the service, nudge the next stage."""

from celery import shared_task

from dashboard.common.jobs import job_run
from dashboard.common.nudge import nudge
from dashboard.pipeline import every
from dashboard.regressions.learned import variances_learn
from dashboard.regressions.services import deployments_judge


@shared_task(name="dashboard.regressions.tasks.judge")
def judge(swept: bool = False) -> None:
    """Judges what has new minutes."""
    if job_run(name="judge", interval=every("judge"), job=deployments_judge, nudged=not swept):
        nudge("dashboard.alerts.tasks.sweep")


@shared_task(name="dashboard.regressions.tasks.learn")
def learn(swept: bool = False) -> None:
    """Learns how much healthy instances differ; what was learned takes effect once a day."""
    job_run(name="learn", interval=every("learn"), job=variances_learn, nudged=not swept)
