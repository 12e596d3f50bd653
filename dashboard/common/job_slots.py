"""Claiming the slots of periodic jobs: whoever inserts the row runs the job, so two beats or none
do no harm."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable
from datetime import timedelta
from itertools import count
from typing import TypeVar

from django.db import connection
from django.db.models import Q

from dashboard.common import clock
from dashboard.common.models import JobSlot
from dashboard.common.write_lock import write_transaction

T = TypeVar("T")
SLOT_RETENTION = timedelta(hours=1), 24
"""Slots are forgotten after so long, and after so many of them."""
CLEANUP_EVERY_CLAIMS = 50
"""Claims of a job by one process from one look for forgotten slots to the next, where the job runs
often."""
MAX_CLOCK_DIFFERENCE_S = 60.0
"""Seconds that the clocks of machines differ at most; a slot that is claimed further ahead was
claimed by a clock that was wrong."""
FINISH_RECORDED_FROM_S = 10.0
"""Seconds between runs from which it is noted that a run ended: more often that would only be more
writes."""
_claims: defaultdict[str, count[int]] = defaultdict(count)
_CLAIM_SQL = (
    "INSERT INTO job_slot (name, slot, claimed_at) VALUES (%s, %s, %s) ON CONFLICT DO NOTHING"
)


def job_run(*, name: str, interval: float, job: Callable[[], T], nudged: bool = False) -> T | None:
    """Runs the job and returns what it returns, or None when somebody else has claimed this slot; a
    job that fails leaves it unfinished.

    A nudged job has work just now and needs no slot."""
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
    """Whether no process has claimed a slot of the job for that many seconds beyond its interval;
    later slots than now do not count."""
    begun = JobSlot.objects.filter(name=name, slot__lte=clock.unix() // interval)
    newest = begun.order_by("-slot").values_list("slot", flat=True).first()
    return newest is None or clock.unix() > (newest + 2) * interval + grace


def slot_claim(*, name: str, interval: float) -> int | None:
    """The current slot of the job if nobody has claimed it yet, else None."""
    slot = int(clock.unix() // interval)
    if JobSlot.objects.filter(name=name, slot=slot).exists():
        return None
    with write_transaction(), connection.cursor() as cursor:
        cursor.execute(_CLAIM_SQL, [name, slot, clock.now()])
        if cursor.rowcount != 1:
            return None
        # By the number of the slot it would never be the turn of a job that leaves slots out in
        # step, as it does where a clock runs ahead.
        if next(_claims[name]) % CLEANUP_EVERY_CLAIMS == 0 or interval >= FINISH_RECORDED_FROM_S:
            least, slots = SLOT_RETENTION
            old = Q(claimed_at__lt=clock.now() - max(least, slots * timedelta(seconds=interval)))
            JobSlot.objects.filter(
                old | Q(slot__gt=slot + MAX_CLOCK_DIFFERENCE_S // interval + 1), name=name
            ).delete()
        return slot


def slot_finish(*, name: str, slot: int) -> None:
    """Notes that the job ran to its end."""
    with write_transaction():
        JobSlot.objects.filter(name=name, slot=slot).update(finished_at=clock.now())
