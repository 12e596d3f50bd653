"""Compiled share: compiled and eager calls of a version, since its deployment and recently.

Includes eager runs of the same regions for comparison.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NamedTuple

from django.db.models import F, OuterRef, Q, QuerySet, Subquery, Sum

from dashboard.fleet.models import Series, VersionHour, VersionMinute
from dashboard.fleet.selectors.versions.observed_calls import sum_observed_calls

EAGER_RUNTIME = "eager"
NOW_MINUTES, RECENT_MINUTES = 15, 60
"""Minutes that define current traffic, and recent execution modes; older data is added by hour."""


_COLUMNS = (
    "version_id",
    "version__name",
    "environment",
    "region",
    "bucket",
    "stratum__gpu",
    "stratum__mode",
    "stratum__runtime",
    "stratum__world_size",
    "last_minute",
)
_SUMMED = (
    "calls",
    "compiled",
    "known",
    "all_sum",
    "all_count",
    "all_gpu",
    "all_gpu_count",
    "recent_calls",
    "recent_compiled",
    "recent_known",
)


class SeriesCalls(NamedTuple):
    """Calls by callers in one series.

    `known` counts sampled calls and stalled calls. `latency_sum` is seconds of timed calls.
    `gpu_sum` is seconds of GPU-timed calls, each minute at its median.
    """

    version_id: int
    version: str
    environment: str
    region: str
    bucket: str
    gpu: str
    mode: str
    runtime: str
    world_size: int
    last_minute: int
    calls: int
    compiled: int
    known: int
    latency_sum: float
    latency_count: int
    gpu_sum: float
    gpu_count: int
    recent_calls: int
    recent_compiled: int
    recent_known: int

    @property
    def eager(self) -> bool:
        """Whether the series runs eager on purpose."""
        return self.runtime == EAGER_RUNTIME

    @property
    def place(self) -> tuple[str, str, str, int]:
        """Place that two comparable series share."""
        return self.region, self.bucket, self.gpu, self.world_size


def query_series_calls(
    *, project_id: int, model_id: int, version_id: int, environment: str, first: int, now: int
) -> QuerySet[Any, Any]:
    """Return the query of the version's series since minute `first`, series of concurrent versions,
    and eager series, for `parse_series_calls`."""
    recent = now - RECENT_MINUTES
    wanted = Q(version_id=version_id, environment=environment) | Q(
        environment=environment, last_minute__gte=recent
    )
    wanted |= Q(stratum__runtime=EAGER_RUNTIME, last_minute__gte=first)
    # A job's own eager measurements are not traffic and appear as calls of another region.
    callers = Q(outermost=True) | Q(stratum__runtime=EAGER_RUNTIME)
    rows = Series.objects.filter(wanted, callers, project_id=project_id, version__model_id=model_id)
    found: QuerySet[Any, Any] = (
        rows.annotate(**_build_sums(project_id, first, now))
        .order_by()
        .values_list("pk", *_COLUMNS, *_SUMMED)
    )
    return found


def parse_series_calls(rows: Iterable[tuple[Any, ...]]) -> list[SeriesCalls]:
    """Return the series in the order in which they were created."""
    return [_make_series_calls(row[1:]) for row in sorted(rows, key=lambda row: int(row[0]))]


def _build_sums(project_id: int, first: int, now: int) -> dict[str, Subquery]:
    """Return the sums named `_SUMMED` as subqueries of a series."""
    recent = now - RECENT_MINUTES
    names: dict[str, Any] = {
        "calls": F("calls"),
        "compiled": F("compiled"),
        "known": sum_observed_calls(),
        "all_sum": F("latency_sum"),
        "all_count": F("latency_count"),
        "all_gpu": F("gpu_p50") * F("gpu_count"),
        "all_gpu_count": F("gpu_count"),
    }
    hours, late = (
        _rows(VersionHour, "hour", project_id, first // 60, now // 60),
        _rows(VersionMinute, "minute", project_id, recent, now),
    )
    sums = {name: _sum(hours, column) for name, column in names.items()}
    sums |= {f"recent_{name}": _sum(late, names[name]) for name in ("compiled", "known")}
    sums["recent_calls"] = _sum(late.filter(minute__gte=now - NOW_MINUTES), F("calls"))
    return sums


def _make_series_calls(row: tuple[Any, ...]) -> SeriesCalls:
    calls = SeriesCalls(*row[: len(_COLUMNS)], *(value or 0 for value in row[len(_COLUMNS) :]))
    # The share of stalled calls may add a fraction, so round.
    return calls._replace(known=round(calls.known), recent_known=round(calls.recent_known))


def _rows(
    table: type[VersionHour] | type[VersionMinute],
    slot: str,
    project_id: int,
    first: int,
    last: int,
) -> QuerySet[Any]:
    """Return the rows of the outer series between two slots, both inclusive."""
    day = 24 if slot == "hour" else 1440
    rows: QuerySet[Any] = table.objects.filter(
        project_id=project_id, day__gte=first // day, day__lte=last // day, series_id=OuterRef("pk")
    )
    return rows.filter(**{f"{slot}__gte": first, f"{slot}__lte": last})


def _sum(rows: QuerySet[Any], what: Any) -> Subquery:
    return Subquery(rows.order_by().values("series_id").annotate(total=Sum(what)).values("total"))
