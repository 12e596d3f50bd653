"""Chart of findings by day: new and returning findings above the line, gone findings below it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from dashboard.common import clock
from dashboard.fleet.selectors.findings.finding_days import DAY_MINUTES, FindingDay

HIGH, STEP, WIDE = 56.0, 10.0, 8.0


@dataclass(frozen=True)
class BarPart:
    """One rectangle of a day's bar."""

    kind: str
    y: float
    height: float


@dataclass(frozen=True)
class DayBar:
    """One day with its rectangles."""

    at: datetime
    x: float
    parts: list[BarPart]
    told: FindingDay


@dataclass(frozen=True)
class FindingsByDay:
    """The whole chart; `zero` is the position of the line, `most` the count of the longest bar."""

    bars: list[DayBar]
    zero: float
    new: int
    gone: int
    back: int
    most: int

    @property
    def width(self) -> float:
        """Width of the drawing in its own units."""
        return len(self.bars) * STEP

    @property
    def busy(self) -> list[DayBar]:
        """Days with changes, newest first."""
        return [bar for bar in reversed(self.bars) if bar.parts]


def build_findings_by_day(days: Sequence[FindingDay]) -> FindingsByDay:
    """Builds the chart; both directions share one scale."""
    above = max((day.new + day.back for day in days), default=0)
    below = max((day.gone for day in days), default=0)
    unit = HIGH / max(1, above + below)
    zero = round(above * unit, 1) if above + below else HIGH
    bars = [
        DayBar(
            clock.at_minute(day.day * DAY_MINUTES), place * STEP, list(_parts(day, zero, unit)), day
        )
        for place, day in enumerate(days)
    ]
    return FindingsByDay(
        bars,
        zero,
        sum(day.new for day in days),
        sum(day.gone for day in days),
        sum(day.back for day in days),
        max(above, below),
    )


def _parts(day: FindingDay, zero: float, unit: float) -> Iterator[BarPart]:
    if day.new:
        yield BarPart("new", round(zero - day.new * unit, 1), round(day.new * unit, 1))
    if day.back:
        yield BarPart(
            "back", round(zero - (day.new + day.back) * unit, 1), round(day.back * unit, 1)
        )
    if day.gone:
        yield BarPart("gone", zero, round(day.gone * unit, 1))


def days_table(days: Sequence[FindingDay]) -> list[list[Any]]:
    """One row per day."""
    return [
        ["day (UTC)", "new", "gone since", "back since"],
        *(
            [f"{clock.at_minute(d.day * DAY_MINUTES):%Y-%m-%d}", d.new, d.gone, d.back]
            for d in days
        ),
    ]
