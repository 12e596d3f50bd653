"""The chart of findings by day: what was new or came back stands above the line, what is gone hangs
below it."""

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
    """One rectangle of a day."""

    kind: str
    y: float
    height: float


@dataclass(frozen=True)
class DayBar:
    """One day with what is drawn of it."""

    at: datetime
    x: float
    parts: list[BarPart]
    told: FindingDay


@dataclass(frozen=True)
class FindingsByDay:
    """The whole chart: `zero` is where its line lies, `most` how many the longest bar is."""

    bars: list[DayBar]
    zero: float
    new: int
    gone: int
    back: int
    most: int

    @property
    def width(self) -> float:
        """Of the drawing, in its own units."""
        return len(self.bars) * STEP

    @property
    def busy(self) -> list[DayBar]:
        """The days on which something happened, the newest first."""
        return [bar for bar in reversed(self.bars) if bar.parts]


def build_findings_by_day(days: Sequence[FindingDay]) -> FindingsByDay:
    """Both directions share one scale."""
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
    """A row a day."""
    return [
        ["day (UTC)", "new", "gone since", "back since"],
        *(
            [f"{clock.at_minute(d.day * DAY_MINUTES):%Y-%m-%d}", d.new, d.gone, d.back]
            for d in days
        ),
    ]
