"""Comparison spans: the time over which two deployments are compared."""

from __future__ import annotations

from collections.abc import Iterable

from dashboard.fleet.models import Deployment
from dashboard.fleet.selectors.versions.version_series import Span

SIDE_BY_SIDE_MINUTES = 10
"""Minimum common minutes; with fewer, each deployment has its own span."""
HOURLY_FROM_MINUTES = 12 * 60


def find_comparison_spans(
    a: Deployment, b: Deployment, minutes: int | None, within: Span | None = None
) -> tuple[dict[int, Span], bool]:
    """Return the common span of two deployments, else the last day of each, and whether the span is
    common.

    `minutes` limits the length. A deployment that did not run `within` the range has no span.
    """
    ran = {
        row.version_id: _clip_span(Span(row.started_minute, row.last_minute + 1), within)
        for row in (a, b)
    }
    first, last = max(span.first for span in ran.values()), min(span.last for span in ran.values())
    if last - first >= SIDE_BY_SIDE_MINUTES:
        span = Span(max(first, last - minutes) if minutes else first, last)
        return {a.version_id: span, b.version_id: span}, True
    length = minutes or (within.last - within.first if within else 1440)
    return {
        id: Span(max(span.first, span.last - length), span.last)
        for id, span in ran.items()
        if span.first < span.last
    }, False


def _clip_span(span: Span, within: Span | None) -> Span:
    return Span(max(span.first, within.first), min(span.last, within.last)) if within else span


def needs_hours(spans: Iterable[Span], *, kept_from: int) -> bool:
    """Return whether hourly tables are needed: for long spans, or spans older than the retained
    minutes."""
    return any(
        span.last - span.first > HOURLY_FROM_MINUTES or span.first < kept_from for span in spans
    )
