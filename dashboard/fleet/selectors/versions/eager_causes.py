"""Eager causes: counts by cause of versions over a span, from the tables per version."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from django.db.models import BigIntegerField, QuerySet, Sum
from django.db.models.functions import Cast

from dashboard.fleet.fold.counters import COUNTED_EAGER_CAUSES
from dashboard.fleet.metrics.eager_causes import EagerBreakdown, sum_breakdowns
from dashboard.fleet.models import Series, VersionHour
from dashboard.fleet.selectors.versions.compiled_share import EAGER_RUNTIME
from dashboard.fleet.selectors.versions.version_series import (
    EAGER_COLUMNS,
    SeriesInfo,
    Span,
    filter_days,
    make_slot_filter,
    query_series_rows,
)

COUNT_COLUMNS = ("compiled", "partial", "unknown", *EAGER_COLUMNS)
SUMS: dict[str, Any] = {f"n_{name}": Cast(Sum(name), BigIntegerField()) for name in COUNT_COLUMNS}
"""Sums cast to integers. PostgreSQL returns decimals, and a union with other queries would turn
their columns into decimals too."""


def build_breakdown(counts: Sequence[Any]) -> EagerBreakdown:
    """Return the breakdown of counts in the order of COUNT_COLUMNS."""
    compiled, partial, unknown, *eager = (int(count or 0) for count in counts)
    return EagerBreakdown(
        compiled,
        partial,
        unknown,
        {cause: count for cause, count in zip(COUNTED_EAGER_CAUSES, eager, strict=True) if count},
    )


def query_eager_causes(
    *, project_id: int, series: Mapping[int, SeriesInfo], spans: Mapping[int, Span], hourly: bool
) -> QuerySet[Any, Any] | None:
    """Return the query for `parse_eager_causes`, each version over its own span; None without rows
    to read."""
    rows = query_series_rows(project_id=project_id, series=series, spans=spans, hourly=hourly)
    return (
        None
        if rows is None
        else rows.values("series_id").annotate(**SUMS).order_by().values_list("series_id", *SUMS)
    )


def parse_eager_causes(
    rows: Iterable[tuple[Any, ...]], series: Mapping[int, SeriesInfo]
) -> dict[int, EagerBreakdown]:
    """Return the breakdown of each version, summed over its series."""
    found: dict[int, list[EagerBreakdown]] = {}
    for id, *counts in rows:
        found.setdefault(series[id].version_id, []).append(build_breakdown(counts))
    return {version: sum_breakdowns(whys) for version, whys in found.items()}


def query_version_eager_causes(
    *, project_id: int, version_id: int, environment: str, first: int, now: int
) -> QuerySet[Any, Any]:
    """Return the query of a version's callers' calls since minute `first`, by hours, for
    `parse_version_eager_causes`.

    Regions that run eager on purpose are excluded.
    """
    series = Series.objects.filter(
        project_id=project_id, version_id=version_id, environment=environment, outermost=True
    )
    series = series.exclude(stratum__runtime=EAGER_RUNTIME)
    span = Span(first, now + 1)
    slots = make_slot_filter(span, hourly=True)
    rows = VersionHour.objects.filter(
        filter_days([span]), project_id=project_id, series_id__in=series.values("pk"), **slots
    )
    summed: QuerySet[Any, Any] = (
        rows.values("project_id").annotate(**SUMS).order_by().values_list(*SUMS)
    )
    return summed


def parse_version_eager_causes(rows: Sequence[tuple[Any, ...]]) -> EagerBreakdown:
    """Return the breakdown of one version."""
    return build_breakdown(rows[0]) if rows else EagerBreakdown()
