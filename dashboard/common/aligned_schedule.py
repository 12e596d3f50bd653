"""When beat sends the task of a periodic job: as each of its slots begins, in step with what claims
them."""

from datetime import datetime
from typing import Any

from celery.beat import Scheduler
from celery.schedules import schedstate, schedule

from dashboard.common import clock

CLOCK_STEP_BACK_S = 1.0
"""Seconds by which the clock goes back before beat makes its plan again."""


class AlignedSchedule(schedule):
    """Due once in each slot, as it begins. A beat of its own phase comes now just before and now
    just after a slot ends: of two tasks in one slot the second does nothing, and the slot in
    between goes unused."""

    def is_due(self, last_run_at: datetime) -> schedstate:
        """Whether another slot has begun, and the seconds until the next one; where a clock was
        ahead, `last_run_at` is ahead."""
        interval = self.seconds
        now = self.now().timestamp()
        slot = now // interval
        return schedstate(slot != last_run_at.timestamp() // interval, (slot + 1) * interval - now)


class AlignedScheduler(Scheduler):
    """Celery's plans each task at a moment of the clock: where the clock was set back by hours, it
    would send nothing for hours."""

    _newest = 0.0

    def tick(self, *args: Any, **named: Any) -> float:
        """Sends what is due; returns the seconds until it should be asked again."""
        now = clock.unix()
        if now < self._newest - CLOCK_STEP_BACK_S:
            self._heap = None
        self._newest = now
        return float(super().tick(*args, **named))
