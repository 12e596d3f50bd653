"""Trailing window: the change of the last hour or hours against the time before, for faults that
begin late.

A mean since the deployment shows a fault that begins after 3 hours only hours later. A trailing
window shows it soon: an instance's earlier difference from the baseline is a covariate that removes
the effects of its host and process, so little noise remains.

Algorithm: difference in differences. Every SNAPSHOT_MINUTES, the sums of each instance are copied.
The difference between the current sums and a copy is the window; the copy is the time before. An
instance counts if it has data in half of the window and EARLIER_MINUTES before it.

Invariants: the window never overlaps the time before; the estimate has a variance of its own, the
`own_share` of the prior; a fault that was there from the beginning cancels, because the mean since
the deployment shows it.

Source: difference in differences with repeated measurements (Frison and Pocock, Repeated measures
in clinical trials, Stat. Med. 11, 1992).
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator, Mapping

from dashboard.regressions.judge.inputs import Stratum
from dashboard.regressions.judge.matched_cell import MatchedCell
from dashboard.regressions.judge.pooled_estimate import Group, Total, Unit, group
from dashboard.regressions.judge.serial_noise import HOUR_MINUTES

SNAPSHOT_MINUTES = 15
EARLIER_MINUTES = 60
"""Minimum matched minutes of an instance before the window."""

Sums = dict[Unit, tuple[float, int]]
CellSums = tuple[Sums, Sums]


class Snapshots:
    """Copies of the sums of one series."""

    def __init__(self, windows: Iterable[int]) -> None:
        self._windows = tuple(windows)
        self._kept: deque[tuple[int, dict[MatchedCell, CellSums]]] = deque()
        self._next: int | None = None

    def take(self, minute: int, cells: Iterable[MatchedCell]) -> bool:
        """Copies the sums if the time has come, and drops copies that no window needs. Returns True
        once an hour."""
        if self._next is not None and minute < self._next:
            return False
        last = self._next
        self._next = (minute // SNAPSHOT_MINUTES + 1) * SNAPSHOT_MINUTES
        copied = {cell: (copy_sums(cell.baseline), copy_sums(cell.candidate)) for cell in cells}
        self._kept.append((minute, copied))
        self._drop(minute)
        return last is not None and last % HOUR_MINUTES == 0

    def _drop(self, minute: int) -> None:
        """Keeps the copies of the shortest window, one an hour beyond, and none beyond the longest
        window."""
        longest, shortest = max(self._windows, default=0), min(self._windows, default=0)
        kept, hours = deque[tuple[int, dict[MatchedCell, CellSums]]](), set[int]()
        for at, copied in reversed(self._kept):
            hour = at // HOUR_MINUTES
            if minute - at <= shortest + SNAPSHOT_MINUTES or hour not in hours:
                kept.appendleft((at, copied))
                hours.add(hour)
            if minute - at >= longest:
                break
        self._kept = kept

    def _find(self, minute: int, window: int) -> dict[MatchedCell, CellSums] | None:
        """The newest copy that is at least as old as the window."""
        return next((found for at, found in reversed(self._kept) if at <= minute - window), None)

    def groups(
        self, minute: int, window: int, strata: Mapping[Stratum, list[MatchedCell]]
    ) -> list[Group]:
        """The change in the window of every stratum, against the time before; empty without a
        copy that is old enough."""
        copied = self._find(minute, window)
        if copied is None:
            return []
        groups = []
        for stratum, cells in strata.items():
            base, cand = (
                subtract_earlier(sum_windows(cells, copied, arm), window) for arm in (0, 1)
            )
            if base and cand:
                groups.append(group(stratum, base, cand))
        return groups

    def list_hours(
        self, minute: int, strata: Mapping[Stratum, list[MatchedCell]]
    ) -> Iterator[tuple[Stratum, dict[Unit, float], dict[Unit, float]]]:
        """The mean differences of both arms in the last hour, by stratum."""
        copied = self._find(minute, HOUR_MINUTES - 1)
        for stratum, cells in strata.items() if copied else ():
            base, cand = (
                {
                    unit: one.later / one.later_minutes
                    for unit, one in sum_windows(cells, copied or {}, arm).items()
                    if 2 * one.longest_later >= HOUR_MINUTES
                }
                for arm in (0, 1)
            )
            yield stratum, base, cand


class WindowSums:
    """The sums of one instance in a window and before it, weighted by traffic."""

    __slots__ = (
        "earlier",
        "earlier_minutes",
        "later",
        "later_minutes",
        "longest_earlier",
        "longest_later",
    )

    def __init__(self) -> None:
        self.earlier = self.earlier_minutes = self.later = self.later_minutes = 0.0
        self.longest_earlier = self.longest_later = 0


def copy_sums(totals: Mapping[Unit, Total]) -> Sums:
    """The sums of every instance."""
    return {unit: (total.difference, total.minutes) for unit, total in totals.items()}


def sum_windows(
    cells: Iterable[MatchedCell], copied: Mapping[MatchedCell, CellSums], arm: int
) -> dict[Unit, WindowSums]:
    """The sums of every instance of an arm, 0 for the baseline, that the copy knows."""
    found: dict[Unit, WindowSums] = {}
    for cell in cells:
        totals, weight = (cell.baseline, cell.candidate)[arm], cell.traffic.baseline
        for unit, (difference, minutes) in copied.get(cell, ({}, {}))[arm].items():
            total = totals.get(unit)
            if total is None:
                continue
            one = found.setdefault(unit, WindowSums())
            one.later += weight * (total.difference - difference)
            one.later_minutes += weight * (total.minutes - minutes)
            one.earlier += weight * difference
            one.earlier_minutes += weight * minutes
            one.longest_later = max(one.longest_later, total.minutes - minutes)
            one.longest_earlier = max(one.longest_earlier, minutes)
    return found


def subtract_earlier(sums: Mapping[Unit, WindowSums], window: int) -> dict[Unit, float]:
    """The mean difference in the window less the mean before it, by instance."""
    return {
        unit: one.later / one.later_minutes - one.earlier / one.earlier_minutes
        for unit, one in sums.items()
        if 2 * one.longest_later >= window
        and one.longest_earlier >= EARLIER_MINUTES
        and one.later_minutes > 0.0
        and one.earlier_minutes > 0.0
    }
