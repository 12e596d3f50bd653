"""Instance heatmap: instances compared with their version per time slot.

Shows latency, eager calls, compile time, and missing reports.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from django.db.models import F, FloatField, Q, QuerySet, Sum

from dashboard.common.raw_queries import Rows, fetch_rows_together
from dashboard.fleet.models import Instance, ProcessMinute, RegionMinute, VersionMinute
from dashboard.fleet.selectors.versions.version_series import (
    EAGER_COLUMNS,
    SeriesInfo,
    Span,
    filter_days,
)
from dashboard.ingest.models import Sender

_CALL_SUMS: dict[str, Any] = {
    "n": Sum("calls"),
    "timed": Sum("calls", filter=Q(p50__isnull=False)),
    "level": Sum(F("p50") * F("calls"), output_field=FloatField()),
    "caller_timed": Sum("calls", filter=Q(caller_p50__isnull=False)),
    "caller_level": Sum(F("caller_p50") * F("calls"), output_field=FloatField()),
    "silent": Sum("calls", filter=Q(stalled_count__isnull=True)),
}
"""Sums of a series in a slot; `silent` counts calls of agents that do not report stalls."""
_MODE_SUMS: dict[str, Any] = {
    f"n_{name}": Sum(name) for name in (*EAGER_COLUMNS, "compiled", "partial")
}


@dataclass(frozen=True)
class Slots:
    """Span in minutes since 1970, divided into equal slots."""

    span: Span
    step: int

    @property
    def count(self) -> int:
        """Number of slots."""
        return -(-(self.span.last - self.span.first) // self.step)


@dataclass
class HeatmapCell:
    """One instance in one slot; None means no report.

    `ratio` is its p50 divided by that of its version, or of the baseline, in the same series and
    minutes. `level` and `timed` are the sum of p50 times calls in seconds, and those calls.
    """

    covered: float = 0.0
    calls: int = 0
    known: int = 0
    eager: int = 0
    compiling: float = 0.0
    level: float = 0.0
    timed: int = 0
    _logs: float = 0.0
    _weight: int = 0

    def add_ratio(self, ratio_times_calls: float, calls: int) -> None:
        """Add the calls of one series."""
        self._logs += ratio_times_calls
        self._weight += calls

    @property
    def ratio(self) -> float | None:
        """Mean ratio weighted by calls; 1 equals the version."""
        return self._logs / self._weight if self._weight else None

    @property
    def eager_share(self) -> float | None:
        """Share of eager calls among calls of known execution mode."""
        return self.eager / self.known if self.known else None

    @property
    def compiling_share(self) -> float | None:
        """Share of compile time in the reported time, at most 1, because parallel compilations can
        exceed it."""
        return min(1.0, self.compiling / self.covered) if self.covered else None


@dataclass
class Heatmap:
    """Cells by instance id and slot; a missing slot has no report. `missing` is the number of lost
    windows by the agent's instance id, without zeros."""

    slots: Slots
    cells: dict[int, dict[int, HeatmapCell]] = field(default_factory=dict)
    missing: dict[str, int] = field(default_factory=dict)

    def cell(self, instance: int, slot: int) -> HeatmapCell:
        """Return the cell, created if missing."""
        return self.cells.setdefault(instance, {}).setdefault(slot, HeatmapCell())


def read_heatmap(
    *,
    project_id: int,
    instance_ids: Collection[int],
    series: Mapping[int, SeriesInfo],
    slots: Slots,
    baseline_id: int | None = None,
) -> Heatmap:
    """Return the heatmap of these instances; one query, none without instances.

    With `baseline_id`, p50 is compared with that version instead of the instance's own version.
    """
    levels = Heatmap(slots)
    if not instance_ids:
        return levels
    (found, own, processes), lost = _read_sums(project_id, instance_ids, series, slots)
    levels.missing = dict(lost)
    # Compare the waiting time of callers if every instance reports it, else the duration of steady
    # calls.
    of = "" if any(row["silent"] for row in (*found, *own)) else "caller_"
    usual = {(row["series_id"], row["slot"]): row for row in found}
    compared, whole_span = _map_reference_series(series, baseline_id), _sum_levels(found, of)
    for row in own:
        cell, reference = levels.cell(row["instance_id"], row["slot"]), compared[row["series_id"]]
        _add_row(cell, row, usual.get((reference, row["slot"])) or whole_span.get(reference), of)
    for row in processes:
        cell = levels.cell(row["instance_id"], row["slot"])
        cell.covered, cell.compiling = row["seconds"], row["compiling"]
    return levels


def _read_sums(
    project_id: int,
    instance_ids: Collection[int],
    series: Mapping[int, SeriesInfo],
    slots: Slots,
) -> tuple[list[list[dict[str, Any]]], Rows]:
    """Return the sums per slot of each series, of each instance and series, and of each process;
    and the lost windows. One query."""
    within = _filter_span(slots) & Q(project_id=project_id)
    slot = (F("minute") - slots.span.first) / slots.step
    of_series, of_instances = Q(series_id__in=list(series)), Q(instance_id__in=instance_ids)
    whole = VersionMinute.objects.filter(within, of_series).values("series_id", slot=slot)
    own = RegionMinute.objects.filter(within, of_instances, of_series)
    processes = ProcessMinute.objects.filter(within, of_instances).values("instance_id", slot=slot)
    *rows, lost = fetch_rows_together(
        whole.annotate(**_CALL_SUMS).order_by(),
        own.values("instance_id", "series_id", slot=slot)
        .annotate(**_CALL_SUMS, **_MODE_SUMS)
        .order_by(),
        processes.annotate(seconds=Sum("covered"), compiling=Sum("compile_seconds")).order_by(),
        _query_lost_windows(project_id, instance_ids),
    )
    names = (
        ("series_id", "slot", *_CALL_SUMS),
        ("instance_id", "series_id", "slot", *_CALL_SUMS, *_MODE_SUMS),
        ("instance_id", "slot", "seconds", "compiling"),
    )
    sums = [
        [dict(zip(own, row, strict=True)) for row in found]
        for own, found in zip(names, rows, strict=True)
    ]
    return sums, lost


def _query_lost_windows(project_id: int, instance_ids: Collection[int]) -> QuerySet[Any, Any]:
    reported = Instance.objects.filter(pk__in=instance_ids).values("instance_id")
    rows = Sender.objects.filter(project_id=project_id, instance_id__in=reported, missing__gt=0)
    return rows.values_list("instance_id", "missing")


def _map_reference_series(
    series: Mapping[int, SeriesInfo], baseline_id: int | None
) -> dict[int, int]:
    """Return for each series the baseline's series of the same stratum, region and bucket, else the
    series itself."""
    known = {
        (facts.stratum_id, facts.region, facts.bucket): id
        for id, facts in series.items()
        if facts.version_id == baseline_id
    }
    return {
        id: known.get((facts.stratum_id, facts.region, facts.bucket), id)
        for id, facts in series.items()
    }


def _sum_levels(rows: Iterable[Mapping[str, Any]], of: str) -> dict[int, dict[str, float]]:
    """Return the level of each series over all slots, for slots in which a baseline has no
    calls."""
    sums: dict[int, dict[str, float]] = {}
    for row in rows:
        own = sums.setdefault(row["series_id"], {f"{of}timed": 0, f"{of}level": 0.0})
        for name in own:
            own[name] += row[name] or 0
    return sums


def _add_row(
    cell: HeatmapCell, row: Mapping[str, Any], reference: Mapping[str, Any] | None, of: str
) -> None:
    """Add the calls of one series; `of` is the prefix of the durations to compare."""
    ran_eager = sum(row[f"n_{name}"] for name in EAGER_COLUMNS)
    cell.calls += row["n"]
    cell.eager += ran_eager
    cell.known += ran_eager + row["n_compiled"] + row["n_partial"]
    cell.level += row[f"{of}level"] or 0.0
    cell.timed += row[f"{of}timed"] or 0
    if reference and reference[f"{of}timed"] and reference[f"{of}level"] and row[f"{of}timed"]:
        usual_level = reference[f"{of}level"] / reference[f"{of}timed"]
        cell.add_ratio(row[f"{of}level"] / usual_level, row[f"{of}timed"])


def _filter_span(slots: Slots) -> Q:
    return filter_days([slots.span]) & Q(minute__gte=slots.span.first, minute__lt=slots.span.last)
