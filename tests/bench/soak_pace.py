"""Intervals of a soak's stages: beat keeps real time, but sends rare tasks once per day of the
soak's clock.

The slots of a stage follow the clock. A clock that runs ten times as fast and skips the nights
makes every slot overdue at all times. The first process of a worker, which only sweeps slots that
no other process has run, then ran everything a second time, and its memory grew."""

from __future__ import annotations

from typing import Any

from celery import signals

from dashboard.common.aligned_schedule import AlignedSchedule
from dashboard.pipeline import BEAT_SCHEDULE
from tests.bench.soak_clock import DAY

GRACE = 2.0 * DAY
"""Seconds of the soak's clock by which a stage may be late, instead of seconds of real time: a day
is some real seconds and a jump."""


def schedule(day: float) -> dict[str, dict[str, Any]]:
    """The beat schedule for a day of this number of real seconds."""
    return {
        name: {**entry, "schedule": AlignedSchedule(min(entry["schedule"].seconds, day))}
        for name, entry in BEAT_SCHEDULE.items()
    }


@signals.worker_init.connect
def patient(**_: Any) -> None:
    """A worker of this process leaves the tasks of beat to beat."""
    from dashboard import fallback_scheduler  # Django is set up only now

    fallback_scheduler.GRACE_BOUNDS_S = GRACE, GRACE
