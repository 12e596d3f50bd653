"""The clock of a soak: it runs faster than real time for the minutes of a day, then it is noon of
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
    """What the environment of every process says: Unix seconds of the begin, how fast, and real
    seconds of a day."""
    return f"{base} {pace} {day}"


def clock(text: str) -> Callable[[], float]:
    """The clock that such a text describes."""
    base, pace, day = map(float, text.split())
    first = base // DAY * DAY + NOON

    def now() -> float:
        days, rest = divmod(_REAL() - base, day)
        return first + days * DAY + rest * pace

    return now


def clock_of_this_process() -> Callable[[], float]:
    """The clock that this process was told."""
    return clock(os.environ[VARIABLE])


def day_of_this_process() -> float:
    """Real seconds of a day, as this process was told."""
    return float(os.environ[VARIABLE].split()[2])
