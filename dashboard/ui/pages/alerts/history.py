"""Rows of the alert history, and the burn-down of error budgets."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from dashboard.alerts.alert_history import AlertWeek, MedianTime, sum_weeks
from dashboard.common import clock
from dashboard.fleet.selectors.versions.budget_burn_down import BURN_DAYS, BudgetDays
from dashboard.ui.charts.driving_chart import (
    ChartSeries,
    ChartSpan,
    DrivingChart,
    draw_driving_chart,
)
from dashboard.vocabulary import numbers

BAR_WIDTH = 100.0
TIME_NAMES = ("Time to detect", "Time to acknowledge", "Time to resolve")


@dataclass(frozen=True)
class HistoryRow:
    """One week: counts, the widths of both bars in percent, and the median times as text with their
    number."""

    week: AlertWeek
    roll_back_width: str
    watch_width: str
    times: list[tuple[str, str, int]]


@dataclass(frozen=True)
class BurnDown:
    """One model: budget, remaining share as text, and its chart."""

    model: BudgetDays
    budget: str
    remaining: str
    exhausted: bool
    chart: DrivingChart | None


def build_history(weeks: Sequence[AlertWeek]) -> tuple[list[HistoryRow], HistoryRow]:
    """Weeks since the first alert, newest first, and all weeks as one."""
    most = max((week.alerts for week in weeks), default=0) or 1
    begun = next((place for place, week in enumerate(weeks) if week.alerts), len(weeks))
    rows = [_row(week, most) for week in reversed(weeks[begun:])]
    total = sum_weeks(weeks)
    return rows, _row(total, total.alerts or 1)


def _row(week: AlertWeek, most: int) -> HistoryRow:
    return HistoryRow(
        week,
        f"{week.roll_back / most * BAR_WIDTH:.1f}",
        f"{week.watch / most * BAR_WIDTH:.1f}",
        [(name, *_time(one)) for name, one in zip(TIME_NAMES, week.medians(), strict=True)],
    )


def _time(one: MedianTime) -> tuple[str, int]:
    if one.seconds is None:
        return "–", 0
    return numbers.format_coarse_duration(one.seconds), one.count


def build_burn_downs(models: Sequence[BudgetDays]) -> list[BurnDown]:
    """The models, the smallest remaining budget first."""
    built = sorted((_remaining(one)[-1], one.name, one) for one in models)
    return [_burn_down(one) for _, _, one in built]


def _remaining(one: BudgetDays) -> list[float]:
    """Remaining share of the budget at the end of each day; negative when it is overspent."""
    today = clock.minute_of(clock.unix()) // 1440
    left, found = one.allowed, []
    for day in range(today - BURN_DAYS + 1, today + 1):
        left -= one.missed.get(day, 0.0)
        found.append(left / one.allowed)
    return found


def _burn_down(one: BudgetDays) -> BurnDown:
    left = _remaining(one)
    today = clock.minute_of(clock.unix()) // 1440
    span = ChartSpan((today - BURN_DAYS + 1) * 1440, (today + 1) * 1440, 1440)
    even = {day: 100 * (1 - (day + 1) / BURN_DAYS) for day in range(BURN_DAYS)}
    chart = draw_driving_chart(
        span=span,
        series=[
            ChartSeries(1, "even use", even),
            ChartSeries(2, "remaining", {day: share * 100 for day, share in enumerate(left)}),
        ],
        marks=(),
        zero=True,
    )
    return BurnDown(
        model=one,
        budget=numbers.percent(one.budget),
        remaining=numbers.percent(left[-1]),
        exhausted=left[-1] <= 0,
        chart=chart,
    )
