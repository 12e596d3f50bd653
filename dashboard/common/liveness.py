"""Liveness of a worker: the time of its last fold on the monotonic clock, shared by its
processes."""

from __future__ import annotations

import multiprocessing
import time

# Created before a worker forks, so that its processes share the value.
_LAST_FOLD_AT = multiprocessing.RawValue("d", 0.0)


def record_fold() -> None:
    """Records a fold of this worker."""
    _LAST_FOLD_AT.value = time.monotonic()


def last_fold_at() -> float:
    """The monotonic time of the last fold by any process of this worker; 0 if there was none."""
    return float(_LAST_FOLD_AT.value)
