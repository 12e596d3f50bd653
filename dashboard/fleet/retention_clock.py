"""Retention clock: prevents deletion while the clock may be wrong.

A clock that jumps ahead by years must not delete anything.
"""

from __future__ import annotations

import logging

from dashboard.common import clock
from dashboard.common.log_throttle import LogThrottle
from dashboard.common.models import JobSlot
from dashboard.fleet.models import RegionMinute
from dashboard.fleet.retention import RetentionResult, retention_run

logger = logging.getLogger(__name__)

JOB_NAME, HOUR_S, MIN_SLOT_AGE_HOURS, HOURS_PER_DAY = "retention", 3600, 20, 24
"""Job that claims an hourly slot. With a correct clock, one of its slots is 20 to 24 hours old."""
_log_throttle = LogThrottle()


def retention_run_if_clock_trusted() -> RetentionResult:
    """Run the retention if this job ran about a day ago by the same clock.

    Otherwise log a warning if rows are due, and delete nothing.
    """
    now = int(clock.unix() // HOUR_S)
    if JobSlot.objects.filter(
        name=JOB_NAME, slot__range=(now - HOURS_PER_DAY, now - MIN_SLOT_AGE_HOURS)
    ).exists():
        return retention_run()
    if _has_old_rows(now // HOURS_PER_DAY) and _log_throttle.times(JOB_NAME):
        logger.warning(
            "no rows are deleted: by this machine's clock (%s), no retention ran about a day "
            "ago. Check the clock; deletion continues after %d hours with a correct clock.",
            clock.format_timestamp(clock.now()),
            MIN_SLOT_AGE_HOURS,
        )
    return RetentionResult()


def _has_old_rows(today: int) -> bool:
    """Return whether rows from before yesterday exist. A new installation has none to delete."""
    return RegionMinute.objects.filter(day__lt=today - 1).exists()
