"""Alert history by week: number of alerts, and the median times to detect, to acknowledge and to
resolve them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from statistics import median

from dashboard.alerts.alert_quality import PERIOD_DAYS
from dashboard.alerts.models import Alert, AlertCause
from dashboard.common import clock
from dashboard.projects.models import Project
from dashboard.vocabulary.severity import ROLL_BACK

WEEK = timedelta(days=7)
WEEKS = PERIOD_DAYS // 7 + 1


@dataclass(frozen=True)
class MedianTime:
    """Median of some times in seconds, and their number; None without one."""

    seconds: float | None
    count: int


@dataclass
class AlertWeek:
    """The alerts that opened in one week; times in seconds."""

    first: datetime
    roll_back: int = 0
    watch: int = 0
    detect: list[float] = field(default_factory=list)
    acknowledge: list[float] = field(default_factory=list)
    resolve: list[float] = field(default_factory=list)

    @property
    def alerts(self) -> int:
        """Number of alerts."""
        return self.roll_back + self.watch

    def medians(self) -> tuple[MedianTime, MedianTime, MedianTime]:
        """Median times to detect, to acknowledge and to resolve."""
        detect, acknowledge, resolve = map(_median, (self.detect, self.acknowledge, self.resolve))
        return detect, acknowledge, resolve


def read_alert_history(*, project: Project) -> list[AlertWeek]:
    """The weeks of the period in UTC, oldest first; the last one includes today. One query."""
    tomorrow = clock.now().replace(hour=0, minute=0, second=0, microsecond=0) + timedelta(days=1)
    weeks = [AlertWeek(tomorrow - WEEK * (WEEKS - place)) for place in range(WEEKS)]
    rows = Alert.objects.filter(project=project, opened_at__gte=weeks[0].first)
    columns = ("opened_at", "acknowledged_at", "resolved_at", "worst", "cause")
    for opened, acknowledged, resolved, worst, cause, started in rows.values_list(
        *columns, "deployment__started_minute"
    ):
        week = weeks[min((opened - weeks[0].first) // WEEK, WEEKS - 1)]
        week.roll_back += worst == ROLL_BACK
        week.watch += worst != ROLL_BACK
        if cause == AlertCause.REGRESSION:
            week.detect.append(_seconds(clock.at_minute(started), opened))
        if acknowledged is not None:
            week.acknowledge.append(_seconds(opened, acknowledged))
        if resolved is not None:
            week.resolve.append(_seconds(opened, resolved))
    return weeks


def sum_weeks(weeks: Iterable[AlertWeek]) -> AlertWeek:
    """All weeks as one."""
    listed = list(weeks)
    total = AlertWeek(listed[0].first)
    for week in listed:
        total.roll_back += week.roll_back
        total.watch += week.watch
        total.detect += week.detect
        total.acknowledge += week.acknowledge
        total.resolve += week.resolve
    return total


def _seconds(first: datetime, last: datetime) -> float:
    return max(0.0, (last - first).total_seconds())


def _median(values: Sequence[float]) -> MedianTime:
    return MedianTime(median(values) if values else None, len(values))
