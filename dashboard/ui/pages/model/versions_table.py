"""Versions table: runtime, share of traffic, and key metrics with the change from the baseline."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from statistics import median

from dashboard.fleet.metrics.aggregate import CallTotals, ProcessTotals
from dashboard.fleet.metrics.eager_causes import EagerBreakdown
from dashboard.fleet.models import Deployment, ModelVersion
from dashboard.fleet.selectors.instances.instances import InstanceData
from dashboard.regressions.models import Verdict
from dashboard.ui.charts import metric_values
from dashboard.ui.charts.evidence_table import EvidenceRow
from dashboard.ui.charts.metric_values import Metric
from dashboard.ui.charts.version_styles import VersionStyle
from dashboard.ui.http.sortable_table import Column, Order
from dashboard.vocabulary import numbers

ADOPTION_MINUTES = 15
COLUMNS: tuple[Metric, ...] = (
    metric_values.P50,
    metric_values.P99,
    metric_values.EAGER,
    metric_values.RECOMPILES,
    metric_values.CACHE,
    metric_values.GPU_MEMORY,
)


SHOWN = (*COLUMNS, metric_values.COLD_START)


def versions_columns(*, whole: bool) -> tuple[Column, ...]:
    """The columns; sorting by metrics requires all versions on one page."""
    counted = [
        Column(metric.title, metric.key if whole else "", right=True, most_first=True)
        for metric in SHOWN
    ]
    return (
        Column("Version", "name"),
        Column("Verdict"),
        Column("First seen", "first", most_first=True),
        Column("Calls now", "share" if whole else "", right=True, most_first=True),
        *counted,
        Column("Action", hidden=True),
    )


def sort_versions(rows: list[VersionRow], order: Order) -> list[VersionRow]:
    """Sorts by a metric if the order requests one."""
    keys: dict[str, Callable[[VersionRow], float | None]] = {"share": lambda row: row.share}
    keys |= {metric.key: _number_at(place) for place, metric in enumerate(SHOWN)}
    return order.sort_rows(rows, keys) if order.key in keys else rows


def _number_at(place: int) -> Callable[[VersionRow], float | None]:
    return lambda row: row.cells[place].number


@dataclass(frozen=True)
class VersionNumbers:
    """Metrics of a version; `own` is True if they cover its last active day instead of the page's
    range."""

    calls: CallTotals | None
    processes: ProcessTotals | None
    own: bool


@dataclass(frozen=True)
class VersionCell:
    """A number with its change; red only if the metric drives a ROLL BACK."""

    title: str
    value: str
    change: str = ""
    css: str = ""
    number: float | None = None
    why: EagerBreakdown | None = None


@dataclass(frozen=True)
class VersionRow:
    """One version of the table."""

    version: ModelVersion
    deployment: Deployment
    slot: int
    verdict: Verdict | None
    is_baseline: bool
    share: float | None
    instance_hours: float | None
    calls: int | None
    own: bool
    cells: list[VersionCell]
    against: int | None

    @property
    def live(self) -> bool:
        """Whether the version has traffic now."""
        return self.deployment.ended_minute is None

    @property
    def calls_text(self) -> str:
        """The exact number of calls of the region in the range, as the agents recorded it."""
        return f"{self.calls or 0:,}"


def version_rows(
    *,
    deployments: Mapping[int, Deployment],
    verdicts: Mapping[int, Verdict],
    drawn: Sequence[VersionStyle],
    by_version: Mapping[int, VersionNumbers],
    shares: Mapping[int, float],
    instances: Sequence[InstanceData],
    evidence: Sequence[EvidenceRow],
    why_eager: Mapping[int, EagerBreakdown],
) -> list[VersionRow]:
    """One row per version, in the order of `by_version`."""
    slots = {version.id: version.slot for version in drawn}
    judged, baseline = (
        next((id for id, slot in slots.items() if slot == wanted), None) for wanted in (2, 1)
    )
    order = [id for id in by_version if id in deployments]
    starts = {
        id: [i.cold_start for i in instances if i.version_id == id and i.cold_start is not None]
        for id in order
    }
    base = by_version.get(baseline) if baseline is not None else None
    rows = []
    for id in order:
        own = by_version[id]
        cells = [_cell(metric, own, base, id, judged, baseline, evidence) for metric in COLUMNS]
        cells = [
            replace(cell, why=why_eager.get(id))
            if cell.title == metric_values.EAGER.title
            else cell
            for cell in cells
        ]
        cells.append(
            _cold_start(
                starts[id], starts.get(baseline, []) if baseline is not None else [], id == baseline
            )
        )
        hours = own.processes.covered / 3600 if own.processes else None
        deployment = deployments[id]
        rows.append(
            VersionRow(
                version=deployment.version,
                deployment=deployment,
                slot=slots.get(id, 0),
                verdict=verdicts.get(deployment.pk),
                is_baseline=id == baseline,
                share=shares.get(id),
                instance_hours=hours,
                calls=own.calls.calls if own.calls else None,
                own=own.own,
                cells=cells,
                against=(judged if id == baseline else baseline),
            )
        )
    return rows


def _cell(
    metric: Metric,
    own: VersionNumbers,
    base: VersionNumbers | None,
    id: int,
    judged: int | None,
    baseline: int | None,
    evidence: Sequence[EvidenceRow],
) -> VersionCell:
    value = metric.read(own.calls, own.processes)
    if metric is metric_values.RECOMPILES:
        return _recompiled(own)
    text = metric_values.format_metric(metric, value)
    if (known := metric.below(own.calls)) is not None:
        return VersionCell(
            metric.title, numbers.bound(known.bound), numbers.mean(known.mean), number=known.bound
        )
    if id == baseline:
        return VersionCell(
            metric.title, text, "baseline" if value is not None else "", number=value
        )
    change = (
        metric_values.format_difference(metric, value, metric.read(base.calls, base.processes))
        if base and base.own == own.own
        else ""
    )
    said = (
        next((row for row in evidence if row.trend == metric.key and row.judged), None)
        if id == judged and change
        else None
    )
    css = (
        ""
        if said is None
        else "drives"
        if said.red
        else "caution"
        if said.caution
        else "worse"
        if said.label == "REGRESSED"
        else ""
    )
    return VersionCell(metric.title, text, change, css, value)


def _recompiled(own: VersionNumbers) -> VersionCell:
    """The count, including the first minutes of an instance, and the calls that waited for a
    compilation. A rate would fall with every hour."""
    title, count = (
        metric_values.RECOMPILES.title,
        own.processes.recompiles if own.processes else None,
    )
    if count is None:
        return VersionCell(title, "–")
    waited = (
        f"{numbers.plural(own.calls.stalled, 'stalled call')}"
        if own.calls and own.calls.reporting
        else ""
    )
    return VersionCell(title, numbers.number(count), waited, number=float(count))


def _cold_start(own: list[float], base: list[float], is_baseline: bool) -> VersionCell:
    title = metric_values.COLD_START.title
    if not own:
        return VersionCell(title, "–")
    value = median(own)
    if is_baseline:
        return VersionCell(title, numbers.duration(value), "baseline", number=value)
    return VersionCell(
        title,
        numbers.duration(value),
        metric_values.format_difference(metric_values.COLD_START, value, median(base))
        if base
        else "",
        "",
        value,
    )
