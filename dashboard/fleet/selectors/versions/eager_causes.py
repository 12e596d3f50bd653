"""Why calls ran eager: counts by cause of versions over a span, from the rows that are added up per version."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from django.db.models import BigIntegerField, QuerySet, Sum
from django.db.models.functions import Cast

from dashboard.fleet.fold.counters import EAGER
from dashboard.fleet.metrics.eager_causes import WhyEager, added
from dashboard.fleet.models import Series, VersionHour
from dashboard.fleet.selectors.versions.compiled_share import EAGER_RUNTIME
from dashboard.fleet.selectors.versions.version_series import EAGER_COLUMNS, SeriesFacts, Span, spans_days, spans_slots, summed_rows

COUNTED = ("compiled", "partial", "unknown", *EAGER_COLUMNS)
SUMS: dict[str, Any] = {f"n_{name}": Cast(Sum(name), BigIntegerField()) for name in COUNTED}
"""Whole numbers: PostgreSQL adds them up as decimal ones, which columns shared with other queries would become as well."""


def why_of(counts: Sequence[Any]) -> WhyEager:
    """The breakdown of counts in the order of COUNTED."""
    compiled, partial, unknown, *eager = (int(count or 0) for count in counts)
    return WhyEager(compiled, partial, unknown, {cause: count for cause, count in zip(EAGER, eager, strict=True) if count})


def eager_rows(*, project_id: int, series: Mapping[int, SeriesFacts], spans: Mapping[int, Span], hourly: bool) -> QuerySet[Any, Any] | None:
    """What `versions_eager` reads, of each version over its own span; None where nothing is asked for."""
    rows = summed_rows(project_id=project_id, series=series, spans=spans, hourly=hourly)
    return None if rows is None else rows.values("series_id").annotate(**SUMS).order_by().values_list("series_id", *SUMS)


def versions_eager(rows: Iterable[tuple[Any, ...]], series: Mapping[int, SeriesFacts]) -> dict[int, WhyEager]:
    """The breakdown of each version, of all its series together."""
    found: dict[int, list[WhyEager]] = {}
    for id, *counts in rows:
        found.setdefault(series[id].version_id, []).append(why_of(counts))
    return {version: added(whys) for version, whys in found.items()}


def version_eager(*, project_id: int, version_id: int, environment: str, first: int, now: int) -> WhyEager:
    """Callers' calls of one version since minute `first`, by hours; regions that run eager on purpose are left out. One query."""
    series = Series.objects.filter(project_id=project_id, version_id=version_id, environment=environment, outermost=True)
    series = series.exclude(stratum__runtime=EAGER_RUNTIME)
    span = Span(first, now + 1)
    slots = spans_slots(span, hourly=True)
    rows = VersionHour.objects.filter(spans_days([span]), project_id=project_id, series_id__in=series.values("pk"), **slots)
    return why_of(list(rows.aggregate(**SUMS).values()))
