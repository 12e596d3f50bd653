"""Whether a clock that says what is too old can be believed: a clock that is years ahead for a
minute must drop nothing."""

from __future__ import annotations

import logging

from dashboard.common import clock
from dashboard.common.log_throttle import LogThrottle
from dashboard.common.models import JobSlot
from dashboard.fleet.models import RegionMinute
from dashboard.fleet.retention import RetentionResult, retention_run

logger = logging.getLogger(__name__)

JOB_NAME, HOUR_S, MIN_SLOT_AGE_HOURS, HOURS_PER_DAY = "retention", 3600, 20, 24
"""The job that claims a slot each hour. By a clock that is right, one of its slots is from 20 to 24
hours old."""
_log_throttle = LogThrottle()


def retention_run_if_clock_trusted() -> RetentionResult:
    """Drops what is too old if this job ran about a day ago by the same clock; else it says that it
    waits, where there is anything."""
    now = int(clock.unix() // HOUR_S)
    if JobSlot.objects.filter(
        name=JOB_NAME, slot__range=(now - HOURS_PER_DAY, now - MIN_SLOT_AGE_HOURS)
    ).exists():
        return retention_run()
    if _has_old_rows(now // HOURS_PER_DAY) and _log_throttle.times(JOB_NAME):
        logger.warning(
            "nothing is dropped: by this machine's clock (%s) no retention ran about a day "
            "ago. It goes on once the clock was right for"
            " %d hours.",
            clock.format_timestamp(clock.now()),
            MIN_SLOT_AGE_HOURS,
        )
    return RetentionResult()


def _has_old_rows(today: int) -> bool:
    """Whether anything is here from before yesterday: a dashboard that was just installed has
    nothing to drop."""
    return RegionMinute.objects.filter(day__lt=today - 1).exists()
