"""Whether a clock that says what is too old can be believed: a clock that is years ahead for a minute must drop nothing."""

from __future__ import annotations

import logging

from dashboard.common import clock
from dashboard.common.log_throttle import Seldom
from dashboard.common.models import JobSlot
from dashboard.fleet.models import RegionMinute
from dashboard.fleet.retention import Dropped, retention_run

logger = logging.getLogger(__name__)

NAME, HOUR, HOURS, DAY = "retention", 3600, 20, 24
"""The job that claims a slot each hour. By a clock that is right, one of its slots is from 20 to 24 hours old."""
_said = Seldom()


def retention_run_if_sure() -> Dropped:
    """Drops what is too old if this job ran about a day ago by the same clock; else it says that it waits, where there is anything."""
    now = int(clock.unix() // HOUR)
    if JobSlot.objects.filter(name=NAME, slot__range=(now - DAY, now - HOURS)).exists():
        return retention_run()
    if _old(now // DAY) and _said.times(NAME):
        logger.warning(
            "nothing is dropped: by this machine's clock (%s) no retention ran about a day ago. It goes on once the clock was right for"
            " %d hours.",
            clock.written(clock.now()),
            HOURS,
        )
    return Dropped()


def _old(today: int) -> bool:
    """Whether anything is here from before yesterday: a dashboard that was just installed has nothing to drop."""
    return RegionMinute.objects.filter(day__lt=today - 1).exists()
