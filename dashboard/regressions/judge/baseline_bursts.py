"""Baseline bursts: the length of the bursts of events in the baseline's minutes.

A version that runs after its baseline has no other version in the same minutes that would show a
storm of errors. A burst that is hardly longer than those of the baseline is therefore no finding.
"""

from __future__ import annotations

from collections.abc import Mapping

from dashboard.regressions.judge.inputs import CellKey, CellRows
from dashboard.regressions.judge.settings import AffectedMetric

LENGTHS = 1.5
"""Events must last this many times as long as the longest burst of the baseline."""


class BaselineBursts:
    """The longest burst so far: minutes in a row in which the share of all calls exceeds the
    threshold."""

    __slots__ = ("_longest", "_metric", "_minutes")

    def __init__(self, metric: AffectedMetric) -> None:
        self._metric = metric
        self._minutes = self._longest = 0

    def add(self, rows: Mapping[CellKey, CellRows]) -> None:
        """Adds a minute. A minute without calls of the baseline changes nothing."""
        if not self._metric.by_rate:
            return
        called = [row for cell in rows.values() for row in cell.baseline]
        calls = sum(map(self._metric.calls, called))
        if not calls:
            return
        burst = sum(map(self._metric.events, called)) > self._metric.threshold * calls
        self._minutes = self._minutes + 1 if burst else 0
        self._longest = max(self._longest, self._minutes)

    def are_exceeded(self, minutes: int) -> bool:
        """True if events of this many minutes are longer than the baseline's bursts explain."""
        return minutes >= LENGTHS * self._longest
