"""How often a soak's stages run: beat keeps to real time, but what it sends seldom is sent once a
day of the soak's clock.

A stage's slots are told by the clock, and a clock that runs ten times as fast and leaves the nights
out makes each of them overdue at all times: the first process of a worker, which sweeps only what
nobody else does, then ran everything a second time, and grew by it."""

from __future__ import annotations

from typing import Any

from celery import signals

from dashboard.common.aligned_schedule import AlignedSchedule
from dashboard.pipeline import BEAT_SCHEDULE
from tests.bench.soak_clock import DAY

GRACE = 2.0 * DAY
"""Seconds of the clock a stage may be late, instead of those of real time: a day is some of real
seconds and a leap."""


def schedule(day: float) -> dict[str, dict[str, Any]]:
    """What beat sends, where a day is so many real seconds long."""
    return {
        name: {**entry, "schedule": AlignedSchedule(min(entry["schedule"].seconds, day))}
        for name, entry in BEAT_SCHEDULE.items()
    }


@signals.worker_init.connect
def patient(**_: Any) -> None:
    """A worker of this process leaves to beat what beat does."""
    from dashboard import fallback_scheduler  # Django is set up only now

    fallback_scheduler.GRACE_BOUNDS_S = GRACE, GRACE
