"""When this worker last folded something, shared by its processes, on a clock that is never set."""

from __future__ import annotations

import multiprocessing
import time

# Made before a worker forks: its processes write the same place.
_FOLDED_AT = multiprocessing.RawValue("d", 0.0)


def folded_note() -> None:
    """This worker folded something just now."""
    _FOLDED_AT.value = time.monotonic()


def folded_at() -> float:
    """When any process of this worker last folded something, by the machine's monotonic clock; 0 when it has not yet."""
    return float(_FOLDED_AT.value)
