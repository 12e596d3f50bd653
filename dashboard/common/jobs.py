"""Claiming the slots of periodic jobs: whoever inserts the row runs the job, so two beats or none do no harm."""

from collections.abc import Callable
from datetime import timedelta
from typing import TypeVar

from django.db import connection

from dashboard.common import clock
from dashboard.common.locks import write_transaction
from dashboard.common.models import JobSlot

T = TypeVar("T")
KEPT = timedelta(days=1)
_CLAIM = "INSERT INTO job_slot (name, slot, claimed_at) VALUES (%s, %s, %s) ON CONFLICT DO NOTHING"


def job_run(*, name: str, interval: float, job: Callable[[], T]) -> T | None:
    """Runs the job and returns what it returns, or None when somebody else has claimed this slot; a job that fails leaves it unfinished."""
    slot = slot_claim(name=name, interval=interval)
    if slot is None:
        return None
    found = job()
    slot_finish(name=name, slot=slot)
    return found


def slot_claim(*, name: str, interval: float) -> int | None:
    """The current slot of the job if nobody has claimed it yet, else None."""
    slot = int(clock.unix() // interval)
    if JobSlot.objects.filter(name=name, slot=slot).exists():
        return None
    with write_transaction(), connection.cursor() as cursor:
        cursor.execute(_CLAIM, [name, slot, clock.now()])
        return slot if cursor.rowcount == 1 else None


def slot_finish(*, name: str, slot: int) -> None:
    """Notes that the job ran to its end, and forgets its slots of the day before."""
    with write_transaction():
        JobSlot.objects.filter(name=name, slot=slot).update(finished_at=clock.now())
        JobSlot.objects.filter(name=name, claimed_at__lt=clock.now() - KEPT).delete()
