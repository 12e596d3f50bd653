"""Recent changes: the compared minutes of the last half hour of data."""

from __future__ import annotations

import math
from collections import deque
from typing import NamedTuple


class Compared(NamedTuple):
    """The mean change of some minutes that were compared at once."""

    minutes: int
    change: float
    shown: bool
    """True if the change is at least half of the smallest effect."""


class RecentChanges:
    """The newest compared minutes, at least `length` of them once there are as many."""

    __slots__ = ("_entries", "_half", "_length", "_shown", "minutes")

    def __init__(self, length: int, effect: float) -> None:
        self.minutes = self._shown = 0
        self._entries: deque[Compared] = deque()
        self._length, self._half = length, effect / 2

    def add(self, minutes: int, change: float) -> None:
        """Adds minutes, and drops those that are no longer recent."""
        one = Compared(minutes, change, change >= self._half)
        self._entries.append(one)
        self.minutes += minutes
        self._shown += minutes * one.shown
        while self.minutes - self._entries[0].minutes >= self._length:
            old = self._entries.popleft()
            self.minutes -= old.minutes
            self._shown -= old.minutes * old.shown

    @property
    def shown_share(self) -> float:
        """The part of the minutes that shows at least half of the smallest effect."""
        return self._shown / max(1, self.minutes)

    def mean(self) -> float | None:
        """The mean change; None before half an hour of data exists."""
        if self.minutes < self._length:
            return None
        return math.fsum([one.minutes * one.change for one in self._entries]) / self.minutes

    def floor(self, least_minutes: int) -> float:
        """The smallest change of the last minutes; 0 with too few minutes."""
        smallest, minutes = math.inf, 0
        for one in reversed(self._entries):
            smallest, minutes = min(smallest, one.change), minutes + one.minutes
            if minutes >= least_minutes:
                return smallest
        return 0.0

    def thirds(self) -> tuple[float, float]:
        """The mean change of the first and of the last third of the minutes."""
        changes = [one.change for one in self._entries for _ in range(one.minutes)]
        third = max(1, len(changes) // 3)
        return math.fsum(changes[:third]) / third, math.fsum(changes[-third:]) / third
