"""The clock of a soak: faster than real time during the minutes of a day, then a jump to noon of
the next day."""

from __future__ import annotations

import os
import time
from collections.abc import Callable

VARIABLE = "SOAK_CLOCK"
DAY = 86400
NOON = DAY // 2
_REAL = time.time


def written(*, base: float, pace: float, day: float) -> str:
    """The environment variable of every process: Unix seconds of the start, the pace, and the real
    seconds of a day."""
    return f"{base} {pace} {day}"


def clock(text: str) -> Callable[[], float]:
    """The clock for this text."""
    base, pace, day = map(float, text.split())
    first = base // DAY * DAY + NOON

    def now() -> float:
        days, rest = divmod(_REAL() - base, day)
        return first + days * DAY + rest * pace

    return now


def clock_of_this_process() -> Callable[[], float]:
    """The clock from the environment of this process."""
    return clock(os.environ[VARIABLE])


def day_of_this_process() -> float:
    """The real seconds of a day, from the environment of this process."""
    return float(os.environ[VARIABLE].split()[2])
