"""Beat schedule aligned to job slots: beat sends a task when its slot begins."""

from datetime import datetime
from typing import Any

from celery.beat import Scheduler
from celery.schedules import schedstate, schedule

from dashboard.common import clock

CLOCK_STEP_BACK_S = 1.0
"""Backward step of the clock after which beat plans again."""


class AlignedSchedule(schedule):
    """Schedule that is due once per slot, when the slot begins.

    A free-running beat drifts around the end of a slot. Two tasks in one slot do the work of one,
    and the next slot stays unused.
    """

    def is_due(self, last_run_at: datetime) -> schedstate:
        """Returns whether a new slot has begun, and the seconds until the next slot.

        `last_run_at` may be in the future if a clock was ahead.
        """
        interval = self.seconds
        now = self.now().timestamp()
        slot = now // interval
        return schedstate(slot != last_run_at.timestamp() // interval, (slot + 1) * interval - now)


class AlignedScheduler(Scheduler):
    """Scheduler that survives a backward step of the clock.

    Celery plans each task at an absolute time. After a step back by hours, Celery would send
    nothing for hours.
    """

    _newest = 0.0

    def tick(self, *args: Any, **named: Any) -> float:
        """Sends the due tasks. Returns the seconds until the next call."""
        now = clock.unix()
        if now < self._newest - CLOCK_STEP_BACK_S:
            self._heap = None
        self._newest = now
        return float(super().tick(*args, **named))
