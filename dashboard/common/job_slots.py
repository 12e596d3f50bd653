"""Job slots: at most one process runs each slot of a periodic job.

The slot number is the Unix time divided by the interval, rounded down. A process claims a slot by
inserting the row (name, slot); the primary key lets one insert succeed. Any number of schedulers is
therefore harmless, and so is a task that arrives twice (`scheduler`).

Invariants:
- A claimed slot is never run again, even if its job failed. The next slot repeats the work, so a
  job must drain its table instead of relying on single runs.
- A claim from the future is of a wrong clock: it is deleted and does not count as recent. A clock
  that is set back therefore stops a job for MAX_CLOCK_DIFFERENCE_S at most.
- Old slots are deleted by age and by count, during claims.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable
from datetime import timedelta
from itertools import count
from typing import TypeVar

from django.db import connection

from dashboard.common import clock
from dashboard.common.models import JobSlot
from dashboard.common.write_lock import write_transaction

T = TypeVar("T")
SLOT_RETENTION = timedelta(hours=1), 24
"""Retention of slots, by age and by count."""
CLEANUP_EVERY_CLAIMS = 50
"""Claims per process and job between two deletions of old slots, for a job that runs often."""
MAX_CLOCK_DIFFERENCE_S = 60.0
"""Maximum difference between the clocks of machines. A claim further in the future is of a wrong
clock."""
FINISH_RECORDED_FROM_S = 10.0
"""Minimum interval for which the end of a run is recorded; shorter intervals would only add
writes."""
_claims: defaultdict[str, count[int]] = defaultdict(count)
_CLAIM_SQL = (
    "INSERT INTO job_slot (name, slot, claimed_at) VALUES (%s, %s, %s) ON CONFLICT DO NOTHING"
)


def job_run(*, name: str, interval: float, job: Callable[[], T], nudged: bool = False) -> T | None:
    """Runs the job and returns its result, or None if another process claimed this slot. A job that
    fails leaves the slot unfinished.

    A nudged job has work at present and needs no slot.
    """
    if nudged:
        return job()
    slot = slot_claim(name=name, interval=interval)
    if slot is None:
        return None
    found = job()
    if interval >= FINISH_RECORDED_FROM_S:
        slot_finish(name=name, slot=slot)
    return found


def is_job_overdue(*, name: str, interval: float, grace: float) -> bool:
    """True if no process has claimed a slot of the job for `grace` seconds beyond its interval.
    Slots in the future do not count."""
    begun = JobSlot.objects.filter(name=name, slot__lte=clock.unix() // interval)
    newest = begun.order_by("-slot").values_list("slot", flat=True).first()
    return newest is None or clock.unix() > (newest + 2) * interval + grace


def slot_claim(*, name: str, interval: float) -> int | None:
    """Claims the current slot of the job. Returns the slot, or None if it is already claimed."""
    slot = int(clock.unix() // interval)
    latest = clock.now() + timedelta(seconds=MAX_CLOCK_DIFFERENCE_S)
    claims = JobSlot.objects.filter(name=name)
    present = dict(claims.filter(slot__gte=slot).values_list("slot", "claimed_at"))
    early = [at for at in present.values() if at > latest]
    if slot in present and not early:
        return None
    with write_transaction(), connection.cursor() as cursor:
        if early:
            claims.filter(claimed_at__gt=latest).delete()
        cursor.execute(_CLAIM_SQL, [name, slot, clock.now()])
        if cursor.rowcount != 1:
            return None
        # The number of the slot would not do here: a job that skips slots in a regular pattern, as
        # with a clock ahead, might never delete.
        if next(_claims[name]) % CLEANUP_EVERY_CLAIMS == 0 or interval >= FINISH_RECORDED_FROM_S:
            least, slots = SLOT_RETENTION
            old = clock.now() - max(least, slots * timedelta(seconds=interval))
            claims.filter(claimed_at__lt=old).delete()
        return slot


def slot_finish(*, name: str, slot: int) -> None:
    """Records that the job finished."""
    with write_transaction():
        JobSlot.objects.filter(name=name, slot=slot).update(finished_at=clock.now())
