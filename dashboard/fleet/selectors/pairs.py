"""Over which time two deployments are put side by side."""

from __future__ import annotations

from collections.abc import Iterable

from dashboard.fleet.models import Deployment
from dashboard.fleet.selectors.trends import Span

TOGETHER = 10
"""Minutes side by side from which both are read over the same time."""
HOURS_FROM = 12 * 60


def pair_spans(a: Deployment, b: Deployment, minutes: int | None) -> tuple[dict[int, Span], bool]:
    """The time in which both ran; where they did not, each one's own last day."""
    first, last = max(a.started_minute, b.started_minute), min(a.last_minute, b.last_minute) + 1
    if last - first >= TOGETHER:
        span = Span(max(first, last - minutes) if minutes else first, last)
        return {a.version_id: span, b.version_id: span}, True
    length = minutes or 1440
    return {row.version_id: Span(max(row.started_minute, row.last_minute + 1 - length), row.last_minute + 1) for row in (a, b)}, False


def spans_hourly(spans: Iterable[Span], *, kept_from: int) -> bool:
    """Whether hours are read: long spans, and those that begin before the minutes that are kept."""
    return any(span.last - span.first > HOURS_FROM or span.first < kept_from for span in spans)
