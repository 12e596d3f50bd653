"""How the calls of a version were served: compiled or not, since its deployment and of late, beside
eager runs of the same region."""

from __future__ import annotations

from typing import Any, NamedTuple

from django.db.models import F, OuterRef, Q, QuerySet, Subquery, Sum

from dashboard.fleet.models import Series, VersionHour, VersionMinute
from dashboard.fleet.selectors.versions.observed_calls import sum_observed_calls

EAGER_RUNTIME = "eager"
NOW_MINUTES, RECENT_MINUTES = 15, 60
"""Who takes the calls now, and how they were served of late; everything before is added up by
hours."""


class SeriesCalls(NamedTuple):
    """Callers' calls of one series. `known` are those that somebody looked at, and calls that
    stalled; `latency_sum` is seconds of the timed ones, `gpu_sum` of those that were timed on the
    GPU, each minute's at its median."""

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
        """Whether the caller said that nothing is compiled here."""
        return self.runtime == EAGER_RUNTIME

    @property
    def place(self) -> tuple[str, str, str, int]:
        """What has to be the same for two series to be compared."""
        return self.region, self.bucket, self.gpu, self.world_size


def read_series_calls(
    *, project_id: int, model_id: int, version_id: int, environment: str, first: int, now: int
) -> list[SeriesCalls]:
    """The version's series since minute `first`, those of the versions that are live beside it, and
    eager ones anywhere; one query."""
    recent = now - RECENT_MINUTES
    wanted = Q(version_id=version_id, environment=environment) | Q(
        environment=environment, last_minute__gte=recent
    )
    wanted |= Q(stratum__runtime=EAGER_RUNTIME, last_minute__gte=first)
    # What a job measures of eager runs itself is no traffic, and counts as made by another region.
    callers = Q(outermost=True) | Q(stratum__runtime=EAGER_RUNTIME)
    rows = Series.objects.filter(wanted, callers, project_id=project_id, version__model_id=model_id)
    known = sum_observed_calls()
    names: dict[str, Any] = {
        "calls": F("calls"),
        "compiled": F("compiled"),
        "known": known,
        "all_sum": F("latency_sum"),
        "all_count": F("latency_count"),
    }
    names |= {"all_gpu": F("gpu_p50") * F("gpu_count"), "all_gpu_count": F("gpu_count")}
    hours, late = (
        _rows(VersionHour, "hour", project_id, first // 60, now // 60),
        _rows(VersionMinute, "minute", project_id, recent, now),
    )
    sums = {name: _sum(hours, column) for name, column in names.items()}
    sums |= {f"recent_{name}": _sum(late, names[name]) for name in ("compiled", "known")}
    sums["recent_calls"] = _sum(late.filter(minute__gte=now - NOW_MINUTES), F("calls"))
    named = (
        "version_id",
        "version__name",
        "environment",
        "region",
        "bucket",
        *(f"stratum__{part}" for part in ("gpu", "mode", "runtime")),
    )
    columns = (
        *named,
        "stratum__world_size",
        "last_minute",
        "calls",
        "compiled",
        "known",
        "all_sum",
        "all_count",
        "all_gpu",
        "all_gpu_count",
    )
    found = (
        rows.annotate(**sums)
        .order_by("pk")
        .values_list(*columns, "recent_calls", "recent_compiled", "recent_known")
    )
    return [_make_series_calls(row) for row in found]


def _make_series_calls(row: tuple[Any, ...]) -> SeriesCalls:
    calls = SeriesCalls(*row[:10], *(value or 0 for value in row[10:]))
    # A part of the stalled calls joins calls that were sampled: no whole number.
    return calls._replace(known=round(calls.known), recent_known=round(calls.recent_known))


def _rows(
    table: type[VersionHour] | type[VersionMinute],
    slot: str,
    project_id: int,
    first: int,
    last: int,
) -> QuerySet[Any]:
    """Of the series around it, within slots that are both included."""
    day = 24 if slot == "hour" else 1440
    rows: QuerySet[Any] = table.objects.filter(
        project_id=project_id, day__gte=first // day, day__lte=last // day, series_id=OuterRef("pk")
    )
    return rows.filter(**{f"{slot}__gte": first, f"{slot}__lte": last})


def _sum(rows: QuerySet[Any], what: Any) -> Subquery:
    return Subquery(rows.order_by().values("series_id").annotate(total=Sum(what)).values("total"))
