"""Celery tasks of accounts."""

from celery import shared_task

from dashboard.accounts.session_expiry import delete_expired_sessions
from dashboard.common.job_slots import job_run
from dashboard.pipeline import stage_interval_s


@shared_task(name="dashboard.accounts.tasks.sessions")
def sessions(swept: bool = True) -> None:
    """Deletes expired sessions."""
    job_run(name="sessions", interval=stage_interval_s("sessions"), job=delete_expired_sessions)
