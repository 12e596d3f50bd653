"""Past levels: the baseline's last day in one cell of one metric, on one host or over a pool of
hosts.

A level is looked up in two ways: at the same minute 24 h earlier, or at a load. The second is an
analysis of covariance of log level over log load.
"""

from __future__ import annotations

import math
from array import array

DAY_MINUTES = 1440
PAST_SLACK_MINUTES = 60
"""Minutes. A past that begins at most this late for a whole day still counts as one."""
NEVER = -(1 << 62)


class PastLevels:
    """The log levels of the last day by minute, and the sums of their regression on load."""

    __slots__ = ("_levels", "_stamps", "_sums", "_weights", "first", "last")

    def __init__(self) -> None:
        self._stamps, self._levels, self._weights = (
            array("q", [NEVER]) * DAY_MINUTES,
            array("d", [0.0]) * DAY_MINUTES,
            array("l", [0]) * DAY_MINUTES,
        )
        self._sums = [0.0] * 5
        self.first: int | None = None
        self.last = NEVER

    def add(self, minute: int, term: float, samples: int, load: float) -> None:
        """Adds a minute of the baseline: the sum of log levels times samples, the samples, and the
        load."""
        slot, level = minute % DAY_MINUTES, term / samples
        self._stamps[slot], self._levels[slot], self._weights[slot] = minute, term, samples
        self.first = minute if self.first is None else self.first
        self.last = minute
        for number, value in enumerate((1.0, load, level, load * load, load * level)):
            self._sums[number] += value

    @property
    def length(self) -> int:
        """Minutes from the first to the last one; 0 without any."""
        return 0 if self.first is None else self.last - self.first + 1

    @property
    def minutes(self) -> float:
        """Number of added minutes."""
        return self._sums[0]

    def covers_day_before(self, minute: int) -> bool:
        """True if the past begins at most PAST_SLACK_MINUTES after this minute a day earlier."""
        return self.first is not None and (self.first <= minute - DAY_MINUTES + PAST_SLACK_MINUTES)

    def spread(self) -> tuple[float, float]:
        """Cross-product of load and level, and sum of squares of load, around their means."""
        n, x, y, xx, xy = self._sums
        return (xy - x * y / n, xx - x * x / n) if n else (0.0, 0.0)

    def day_before(self, opened: int, minute: int, least: int) -> float | None:
        """The mean log level in these minutes a day earlier; None with fewer samples."""
        slots = [
            at % DAY_MINUTES
            for at in range(opened, minute + 1)
            if self._stamps[at % DAY_MINUTES] == at - DAY_MINUTES
        ]
        samples = sum(self._weights[slot] for slot in slots)
        levels = math.fsum(self._levels[slot] for slot in slots)
        return levels / samples if samples >= least else None

    def expected(self, load: float, slope: float) -> float:
        """The mean log level, adjusted for load."""
        n, x, y, _, _ = self._sums
        return y / n + slope * (load - x / n)
