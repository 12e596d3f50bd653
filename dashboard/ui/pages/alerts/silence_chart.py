"""Chart of a silence alert: the number of instances that reported, by minute."""

from __future__ import annotations

import math

from django.db.models import Sum

from dashboard.alerts.models import Alert, AlertCause
from dashboard.common import clock
from dashboard.fleet.models import ModelVersion, VersionProcessMinute
from dashboard.ui.charts.driving_chart import (
    ChartMark,
    ChartSeries,
    ChartSpan,
    DrivingChart,
    draw_driving_chart,
)

LEAD_MINUTES, TAIL_MINUTES, MAX_BINS = 60, 30, 120
MAX_MINUTES = 36 * 60
SETTLE_MINUTES = 2
"""The newest minutes are still arriving: a missing row there is not silence."""


def draw_silence_chart(alert: Alert) -> DrivingChart | None:
    """Reporting instances of the model, or of the whole project; None without any report. One
    query."""
    opened, now = clock.minute_of(alert.opened_at.timestamp()), clock.minute_of(clock.unix())
    ended = alert.resolved_at
    until = min(now, clock.minute_of(ended.timestamp()) + TAIL_MINUTES) if ended else now
    first = max(opened - LEAD_MINUTES, until - MAX_MINUTES)
    until = max(until, first + TAIL_MINUTES)
    span = ChartSpan(first, until, math.ceil((until - first) / MAX_BINS))
    counts = _count_instances(alert, first, until)
    if not counts:
        return None
    settled = min(until, now - SETTLE_MINUTES)
    begun = min(counts)
    points: dict[int, float] = {}
    for minute in range(begun, max(settled, max(counts)) + 1):
        place = (minute - first) // span.bin
        points[place] = max(points.get(place, 0.0), counts.get(minute, 0))
    return draw_driving_chart(
        span=span,
        series=[ChartSeries(2, "reporting instances", points)],
        marks=[ChartMark(opened, alert.worst, "alert")],
        zero=True,
        onset=opened,
        until=clock.minute_of(ended.timestamp()) if ended else None,
    )


def _count_instances(alert: Alert, first: int, last: int) -> dict[int, int]:
    rows = VersionProcessMinute.objects.filter(
        project_id=alert.project_id,
        day__gte=first // 1440,
        day__lte=last // 1440,
        minute__gte=first,
        minute__lte=last,
    )
    if alert.cause == AlertCause.SILENCE:
        versions = ModelVersion.objects.filter(model_id=alert.deployment.model_id)
        rows = rows.filter(version_id__in=versions.values("pk"))
    return dict(rows.order_by().values_list("minute").annotate(total=Sum("instances")))
