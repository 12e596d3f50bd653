"""Celery tasks: fold, deployments, finding states, partitions, retention and storage."""

from celery import shared_task

from dashboard.common import clock
from dashboard.common.heartbeat import record_fold, record_fold_end
from dashboard.common.job_slots import job_run
from dashboard.common.nudge import nudge
from dashboard.fleet.finding_states import update_finding_states
from dashboard.fleet.fold_service import end_stale_deployments, fold_all
from dashboard.fleet.partitions import partitions_ensure
from dashboard.fleet.retention_clock import retention_run_if_clock_trusted
from dashboard.fleet.storage_sampling import storage_measure
from dashboard.pipeline import stage_interval_s

FOLDING_SECONDS = 2.0
"""Seconds per fold task. Further tasks fold the remaining backlog, so that other tasks run and a
worker stops soon."""


@shared_task(name="dashboard.fleet.tasks.fold")
def fold(swept: bool = False) -> None:
    """Fold the inbox."""
    moved = job_run(
        name="fold",
        interval=stage_interval_s("fold"),
        job=lambda: fold_all(seconds=FOLDING_SECONDS),
        nudged=not swept,
    )
    record_fold_end()
    if moved:
        record_fold()
        nudge("dashboard.regressions.tasks.judge")


@shared_task(name="dashboard.fleet.tasks.deployments")
def deployments(swept: bool = True) -> None:
    """End deployments without traffic."""
    now_minute = clock.minute_of(clock.unix())
    if job_run(
        name="deployments",
        interval=stage_interval_s("deployments"),
        job=lambda: end_stale_deployments(now_minute=now_minute),
    ):
        nudge("dashboard.regressions.tasks.judge")


@shared_task(name="dashboard.fleet.tasks.lives")
def lives(swept: bool = True) -> None:
    """Update the finding states of models with new reports."""
    job_run(name="lives", interval=stage_interval_s("lives"), job=update_finding_states)


@shared_task(name="dashboard.fleet.tasks.partitions")
def partitions(swept: bool = True) -> None:
    """Create the partitions of the next days."""
    today = int(clock.unix() // 86400)
    job_run(
        name="partitions",
        interval=stage_interval_s("partitions"),
        job=lambda: partitions_ensure(today=today),
    )


@shared_task(name="dashboard.fleet.tasks.retention")
def retention(swept: bool = True) -> None:
    """Delete expired rows."""
    job_run(
        name="retention", interval=stage_interval_s("retention"), job=retention_run_if_clock_trusted
    )


@shared_task(name="dashboard.fleet.tasks.storage")
def storage(swept: bool = True) -> None:
    """Measure the bytes per day of an instance and of a version, if due."""
    job_run(name="storage", interval=stage_interval_s("storage"), job=storage_measure)
