"""Tells the next stage that there is work; only workers nudge, and a lost nudge costs one sweep
interval."""

from celery import current_app

from dashboard.common.redis_status import BROKER

lost_nudges = 0
"""Nudges this process could not send, since its start."""


def nudge(task: str) -> None:
    """Sends a task by its name and never raises: the sweep does what a lost nudge would have
    done."""
    global lost_nudges
    if BROKER.is_in_backoff:
        lost_nudges += 1
        return
    try:
        current_app.send_task(task, expires=10, retry=False, ignore_result=True)
    except Exception as error:  # noqa: BLE001 - whatever the broker's client raises, the sweep makes up for it
        lost_nudges += 1
        BROKER.failed(error)
    else:
        BROKER.record_success()
