"""Keeps the table of claimed slots short."""

from celery import shared_task

from dashboard.common.jobs import slots_forget


@shared_task(name="dashboard.common.tasks.slots")
def slots() -> None:
    """Forgets slots nobody can claim again."""
    slots_forget()
