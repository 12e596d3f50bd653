"""The tasks of the fleet: fold what waits, end deployments, make partitions."""

from celery import shared_task

from dashboard.common import clock
from dashboard.common.jobs import job_run
from dashboard.common.nudge import nudge
from dashboard.fleet.partitions import partitions_ensure
from dashboard.fleet.services import deployments_update, fold_all
from dashboard.pipeline import every


@shared_task(name="dashboard.fleet.tasks.fold")
def fold() -> None:
    """Drains the inbox."""
    if fold_all():
        nudge("dashboard.regressions.tasks.judge")


@shared_task(name="dashboard.fleet.tasks.deployments")
def deployments() -> None:
    """Ends deployments whose traffic is gone."""
    now_minute = clock.minute_of(clock.unix())
    if job_run(name="deployments", interval=every("deployments"), job=lambda: deployments_update(now_minute=now_minute)):
        nudge("dashboard.regressions.tasks.judge")


@shared_task(name="dashboard.fleet.tasks.partitions")
def partitions() -> None:
    """Makes the partitions of the days to come."""
    today = int(clock.unix() // 86400)
    job_run(name="partitions", interval=every("partitions"), job=lambda: partitions_ensure(today=today))
