"""Intervals of a soak's stages: the scheduler keeps real time, but sends rare tasks once per day of
the soak's clock.

The slots of a stage follow the clock. A clock that runs ten times as fast and skips the nights
begins a slot every second and makes every slot overdue at all times. The first process of a worker,
which only sweeps slots that no other process has run, then ran everything a second time, and its
memory grew."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

from celery import signals

from dashboard.pipeline import Stage
from tests.bench.soak_clock import DAY, day_of_this_process

GRACE = 2.0 * DAY
"""Seconds of the soak's clock by which a stage may be late, instead of seconds of real time: a day
is some real seconds and a jump."""


def real_slots(day: float) -> Callable[[Stage], int]:
    """The slot of a stage in real time, for a day of this number of real seconds."""
    return lambda stage: int(time.time() // min(stage.every, day))


@signals.worker_init.connect
def set_intervals(**_: Any) -> None:
    """A worker of this process sends and sweeps by the intervals of a soak."""
    from dashboard import scheduler  # Django is set up only now

    scheduler.GRACE_BOUNDS_S = GRACE, GRACE
    scheduler.current_slot = real_slots(day_of_this_process())
