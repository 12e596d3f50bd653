"""Pool past: an instance whose host has no past is compared with the pool of the baseline's hosts
over the last day.

Pods with new names on unknown nodes share no host with the baseline. Their levels can still be
compared with the mean level of all hosts of the baseline, at the same minute 24 h earlier or
adjusted for load, as in `before_after`.

Invariants: hosts count equally in the pool; the pool needs `past_minutes`; minutes more than a day
after the last minute of the baseline are not compared.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from operator import attrgetter

from dashboard.regressions.judge.before_after import (
    Adjustment,
    Closed,
    HostHistory,
    Loads,
    sum_levels,
    sum_totals,
)
from dashboard.regressions.judge.inputs import InstanceMinute
from dashboard.regressions.judge.past_levels import PastLevels
from dashboard.regressions.judge.pooled_estimate import Total, Unit, evict_units
from dashboard.regressions.judge.settings import RatioMetric, Settings

UNIT: Callable[[InstanceMinute], Unit] = attrgetter("unit")


class PoolPast:
    """The mean level of the baseline's hosts in one cell of one metric, and the candidate's
    instances that are compared with it."""

    __slots__ = ("_units", "minutes", "past")

    def __init__(self) -> None:
        self.past = PastLevels()
        self.minutes = 0
        """Minutes in which an instance was compared."""
        self._units: dict[Unit, HostHistory] = {}

    def add(self, minute: int, levels: Mapping[str, tuple[float, int]], loads: Loads) -> None:
        """Adds a minute of the baseline: the sum of log levels times samples, and the samples, by
        host."""
        if not levels:
            return
        samples = sum(count for _, count in levels.values())
        level = math.fsum(term / count for term, count in levels.values()) / len(levels)
        load = math.fsum(loads["baseline", host] for host in levels) / len(levels)
        self.past.add(minute, level * samples, samples, load)

    def compare(
        self,
        minute: int,
        rows: Iterable[InstanceMinute],
        loads: Loads,
        metric: RatioMetric,
        adjust: Adjustment,
        settings: Settings,
    ) -> list[Closed]:
        """Compares the candidate's minute with the pool. Returns the bins that it closes."""
        hosts = {row.unit: row.host for row in rows}
        found = []
        for unit, (term, samples) in sum_levels(rows, metric, UNIT).items():
            one = self._units.get(unit)
            if one is None:
                evict_units(self._units, minute)
                one = self._units[unit] = HostHistory(self.past)
            load = loads["candidate", hosts[unit]]
            closed = one.add(minute, term, samples, load, adjust, settings)
            if closed:
                found.append(closed)
        if found:
            self.minutes += max(closed.span for closed in found)
        return found

    @property
    def aligned(self) -> bool:
        """True if an instance is compared with the same minutes a day earlier."""
        return any(one.aligned for one in self._units.values() if one.minutes)

    def totals(self, slope: float) -> dict[Unit, Total]:
        """The candidate's sums, by instance."""
        return sum_totals(self._units, slope)
