"""When this worker last folded something, shared by its processes, on a clock that is never set."""

from __future__ import annotations

import multiprocessing
import time

# Made before a worker forks: its processes write the same place.
_LAST_FOLD_AT = multiprocessing.RawValue("d", 0.0)


def record_fold() -> None:
    """This worker folded something just now."""
    _LAST_FOLD_AT.value = time.monotonic()


def last_fold_at() -> float:
    """When any process of this worker last folded something, by the machine's monotonic clock; 0
    when it has not yet."""
    return float(_LAST_FOLD_AT.value)
