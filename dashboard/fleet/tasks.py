"""The tasks of the fleet: fold what waits, end deployments, make partitions."""

from celery import shared_task

from dashboard.common import clock
from dashboard.common.nudge import nudge
from dashboard.fleet.partitions import partitions_ensure
from dashboard.fleet.services import deployments_update, fold_all


@shared_task(name="dashboard.fleet.tasks.fold")
def fold() -> None:
    """Drains the inbox."""
    if fold_all():
        nudge("dashboard.regressions.tasks.judge")


@shared_task(name="dashboard.fleet.tasks.deployments")
def deployments() -> None:
    """Ends deployments whose traffic is gone."""
    if deployments_update(now_minute=clock.minute_of(clock.unix())):
        nudge("dashboard.regressions.tasks.judge")


@shared_task(name="dashboard.fleet.tasks.partitions")
def partitions() -> None:
    """Makes the partitions of the days to come."""
    partitions_ensure(today=int(clock.unix() // 86400))
