"""Celery tasks for alerts."""

import logging

from celery import shared_task

from dashboard.alerts.kill_switch.services import kill_switches_advance
from dashboard.alerts.services import (
    alerts_correlate,
    alerts_sync,
    deliveries_send,
    enqueue_reminders,
    release_held_deliveries,
    rollbacks_watch,
    silences_watch,
)
from dashboard.common.job_slots import job_run
from dashboard.common.nudge import nudge
from dashboard.pipeline import stage_interval_s

logger = logging.getLogger(__name__)


@shared_task
def sweep(swept: bool = False) -> None:
    """Updates alerts from verdicts, groups them, queues reminders and releases held messages, then
    triggers delivery."""
    if job_run(name="alert", interval=stage_interval_s("alert"), job=_follow, nudged=not swept):
        nudge("dashboard.alerts.tasks.deliver")


@shared_task
def deliver(swept: bool = False) -> None:
    """Sends the queued messages."""
    job_run(
        name="deliver", interval=stage_interval_s("deliver"), job=deliveries_send, nudged=not swept
    )


@shared_task
def rollbacks(swept: bool = False) -> None:
    """Detects rollbacks in progress, and checks recovery after them."""
    if job_run(
        name="rollbacks",
        interval=stage_interval_s("rollbacks"),
        job=rollbacks_watch,
        nudged=not swept,
    ):
        nudge("dashboard.alerts.tasks.deliver")


@shared_task
def switch(swept: bool = False) -> None:
    """Advances the active kill switches."""
    job_run(
        name="switch",
        interval=stage_interval_s("switch"),
        job=kill_switches_advance,
        nudged=not swept,
    )


def _follow() -> int:
    """Runs all steps; a failed step does not stop the others."""
    count, errors = 0, []
    for step in (
        silences_watch,
        alerts_sync,
        alerts_correlate,
        enqueue_reminders,
        release_held_deliveries,
    ):
        try:
            count += step()
        except Exception as error:
            logger.exception("%s failed; the other steps continue", step.__name__)
            errors.append(error)
    if errors:
        raise ExceptionGroup("alert steps failed", errors)
    return count
