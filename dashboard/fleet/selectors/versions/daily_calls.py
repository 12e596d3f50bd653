"""Daily calls: calls per day of a model, or of all models of a project, from the hourly tables."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

from django.db.models import BigIntegerField, F, Q, QuerySet, Sum
from django.db.models.functions import Cast, Round

from dashboard.fleet.models import Series, VersionHour
from dashboard.fleet.selectors.versions.observed_calls import sum_observed_calls

SERIES_COLUMNS = ("stratum__gpu", "stratum__world_size", "region", "bucket")


class SeriesDay(NamedTuple):
    """One series on one day.

    `p50` and `p99` are sums of hourly quantiles, each multiplied by its timed calls.
    """

    gpu: str
    world_size: int
    region: str
    bucket: str
    day: int
    calls: int
    compiled: int
    known: int
    timed: int
    p50: float
    p99: float


def read_series_days(
    *, project_id: int, model_id: int, environment: str, first_day: int, last_day: int
) -> Iterator[SeriesDay]:
    """Yield callers' calls of all versions in an environment, `last_day` exclusive.

    Two queries; no sketch is read.
    """
    rows = Series.objects.filter(
        project_id=project_id,
        version__model_id=model_id,
        environment=environment,
        outermost=True,
        last_minute__gte=first_day * 1440,
    )
    series = {pk: facts for pk, *facts in rows.values_list("pk", *SERIES_COLUMNS)}
    hours = VersionHour.objects.filter(
        project_id=project_id, day__gte=first_day, day__lt=last_day, series_id__in=list(series)
    )
    for series_id, day, *sums in _sum_hours(hours):
        yield _series_day(series[series_id], day, sums)


def read_project_days(
    *, project_id: int, environment: str, first_day: int, last_day: int
) -> Iterator[tuple[int, str, SeriesDay]]:
    """Yield the days of all models, each with model and environment; two queries.

    An empty environment means all environments.
    """
    rows = Series.objects.filter(
        project_id=project_id, outermost=True, last_minute__gte=first_day * 1440
    )
    if environment:
        rows = rows.filter(environment=environment)
    columns = ("pk", "version__model_id", "environment", *SERIES_COLUMNS)
    series = {
        pk: (model_id, where, facts) for pk, model_id, where, *facts in rows.values_list(*columns)
    }
    # The key has the day before the series: read all rows of the days at once instead of one lookup
    # per series.
    hours = VersionHour.objects.filter(project_id=project_id, day__gte=first_day, day__lt=last_day)
    for series_id, day, *sums in _sum_hours(hours):
        if series_id in series:
            model_id, where, facts = series[series_id]
            yield model_id, where, _series_day(facts, day, sums)


def _sum_hours(hours: QuerySet[VersionHour]) -> QuerySet[VersionHour, tuple[Any, ...]]:
    known = sum_observed_calls()
    summed = hours.values_list("series_id", "day").annotate(
        all_calls=Sum("calls"),
        all_compiled=Sum("compiled"),
        all_known=Cast(Round(Sum(known)), BigIntegerField()),
        timed=Sum("latency_count"),
        known_timed=Sum("latency_count", filter=Q(p50__isnull=False)),
        p50s=Sum(F("p50") * F("latency_count")),
        p99s=Sum(F("p99") * F("latency_count")),
    )
    return summed.order_by()


def _series_day(facts: list[Any], day: int, sums: list[Any]) -> SeriesDay:
    gpu, world_size, region, bucket = facts
    calls, compiled, known, timed, with_p50, p50, p99 = (value or 0 for value in sums)
    # An hour lies in an engine's first bucket: the other hours alone would represent the slow ones.
    if with_p50 < timed:
        timed = p50 = p99 = 0
    return SeriesDay(gpu, world_size, region, bucket, day, calls, compiled, known, timed, p50, p99)
