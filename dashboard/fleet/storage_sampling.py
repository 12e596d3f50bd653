"""Storage sampling: measures bytes per day of an instance and of a version for pages."""

from __future__ import annotations

import logging
import time

from django.db import DatabaseError, connection

from dashboard.common import clock
from dashboard.common.write_lock import write_transaction
from dashboard.fleet.models import StorageMeasure
from dashboard.fleet.table_sizes import GOAL_BYTES_A_DAY, read_table_sizes, sum_bytes_a_day

MIN_INTERVAL_S, INTERVAL_RATIO = 3500.0, 1000.0
"""Minimum interval in seconds, and as a multiple of the last measurement's duration."""

log = logging.getLogger(__name__)


def storage_measure() -> bool:
    """Measure if due; return whether it measured."""
    known = list(StorageMeasure.objects.all())
    if known and not any(_is_due(one) for one in known):
        return False
    began = time.monotonic()
    try:
        tables = read_table_sizes()
    except DatabaseError as error:
        if connection.vendor == "sqlite" and "dbstat" in str(error):
            log.warning("this SQLite was built without dbstat, so table sizes are unavailable")
            return False
        raise
    took = time.monotonic() - began
    with write_transaction():
        for of in GOAL_BYTES_A_DAY:
            found = {
                "bytes_a_day": sum_bytes_a_day(tables, of),
                "measured_at": clock.now(),
                "took": took,
            }
            StorageMeasure.objects.update_or_create(of=of, defaults=found)
    return True


def _is_due(one: StorageMeasure) -> bool:
    """Return whether a measurement is due; without data, each sweep measures, because the tables
    are empty."""
    passed = (clock.now() - one.measured_at).total_seconds()
    return one.bytes_a_day is None or passed >= max(MIN_INTERVAL_S, INTERVAL_RATIO * one.took)
