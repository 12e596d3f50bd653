"""Nudge: notifies the next stage of new work. Only workers nudge, and a lost nudge costs one sweep
interval."""

from celery import current_app

from dashboard.common.redis_status import BROKER

lost_nudges = 0
"""Nudges that this process could not send since its start."""


def nudge(task: str) -> None:
    """Sends a task by name. Never raises: the next sweep does the work of a lost nudge."""
    global lost_nudges
    if BROKER.is_in_backoff:
        lost_nudges += 1
        return
    try:
        current_app.send_task(task, expires=10, retry=False, ignore_result=True)
    except Exception as error:  # noqa: BLE001  # the next sweep replaces the nudge
        lost_nudges += 1
        BROKER.failed(error)
    else:
        BROKER.record_success()
