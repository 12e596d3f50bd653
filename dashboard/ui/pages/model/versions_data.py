"""Totals of each version of the Versions tab in the range, or of its last active day."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from dashboard.fleet.metrics.aggregate import (
    all_report_stalls,
    bin_calls,
    bin_processes,
    choose_clock,
    sum_call_bins,
    sum_process_bins,
)
from dashboard.fleet.metrics.eager_causes import EagerBreakdown
from dashboard.fleet.metrics.time_bins import TimeBins
from dashboard.fleet.models import Deployment, WatchedModel
from dashboard.fleet.selectors.instances.instances import InstanceData, list_version_instances
from dashboard.fleet.selectors.versions.version_series import (
    CallPoint,
    Span,
    read_outermost_series,
    read_region_seconds,
)
from dashboard.ui.charts.evidence_table import build_evidence_rows
from dashboard.ui.charts.version_styles import VersionStyle
from dashboard.ui.pages.model.queries import clip_spans
from dashboard.ui.pages.model.rollups import Rollups, read_rollups
from dashboard.ui.pages.model.verdict_queries import ModelVerdicts
from dashboard.ui.pages.model.versions_table import (
    ADOPTION_MINUTES,
    VersionNumbers,
    VersionRow,
    version_rows,
)

WHOLE = TimeBins(0, 1 << 40, 1 << 40)


@dataclass(frozen=True)
class VersionsData:
    """Sums of the versions on one page of the table."""

    standing: ModelVerdicts
    window: TimeBins
    listed: Sequence[int]
    drawn: list[VersionStyle]
    region: str
    regions: dict[str, float]
    sums: Rollups
    instances: list[InstanceData]

    @property
    def why_eager(self) -> dict[int, EagerBreakdown]:
        """Causes of eager calls by version."""
        return self.sums.why_eager


def read_versions_data(
    *,
    model: WatchedModel,
    standing: ModelVerdicts,
    window: TimeBins,
    region: str,
    listed: Sequence[int],
) -> VersionsData:
    """Reads the table in three queries, or four if there are several regions."""
    span, hourly = Span(window.first, window.last), window.step % 60 == 0
    wanted = list(dict.fromkeys((*(id for id in standing.pair if id is not None), *listed)))
    project, environment = model.project_id, standing.environment
    spans = clip_spans(standing, wanted, span)
    series = read_outermost_series(project_id=project, version_ids=wanted, environment=environment)
    regions = read_region_seconds(project_id=project, series=series, span=span, hourly=hourly)
    chosen = region if region in regions else next(iter(regions), "")
    own = {
        id: _last_day(standing.latest[id])
        for id in wanted
        if id not in spans and id in standing.latest
    }
    return VersionsData(
        standing=standing,
        window=window,
        listed=listed,
        drawn=standing.drawn(wanted),
        region=chosen,
        regions=regions,
        sums=read_rollups(
            place={"project_id": project, "environment": environment},
            series=series,
            region=chosen,
            spans=spans,
            own=own,
            hourly=hourly,
        ),
        instances=list_version_instances(
            project_id=project, version_ids=wanted, environment=environment
        ),
    )


def build_version_rows(data: VersionsData) -> list[VersionRow]:
    """The rows of the table, in the order of the list."""
    verdict = data.standing.verdict
    return version_rows(
        deployments=data.standing.latest,
        verdicts=data.standing.verdicts,
        drawn=data.drawn,
        by_version=_numbers(data),
        shares=share_traffic(data.sums.calls, data.window.step % 60 == 0),
        instances=data.instances,
        evidence=build_evidence_rows(verdict.evidence, verdict=verdict.kind) if verdict else [],
        why_eager=data.why_eager,
    )


def share_traffic(calls: Iterable[CallPoint], hourly: bool) -> dict[int, float]:
    """Each version's share of the environment's calls in the newest minutes of the range."""
    rows, step = list(calls), 60 if hourly else 1
    newest = max((row.minute for row in rows), default=0)
    since = newest - max(ADOPTION_MINUTES, step) + step
    counts: dict[int, int] = {}
    for row in rows:
        if row.minute >= since:
            counts[row.version_id] = counts.get(row.version_id, 0) + row.calls
    total = sum(counts.values())
    return {id: count / total for id, count in counts.items()} if total else {}


def _numbers(data: VersionsData) -> dict[int, VersionNumbers]:
    """Numbers of each listed version in the range; without a report in the range, of its last
    active day."""
    sums = data.sums
    clock = choose_clock(sums.calls)
    callers = all_report_stalls((*sums.calls, *sums.own_calls))
    calls = sum_call_bins(bin_calls(sums.calls, data.window, clock, callers))
    processes = sum_process_bins(bin_processes(sums.processes, data.window))
    own_calls = bin_calls(sums.own_calls, WHOLE, clock, callers)
    own_processes = bin_processes(sums.own_processes, WHOLE)
    return {
        id: VersionNumbers(calls.get(id), processes.get(id), own=False)
        if id in calls or id in processes
        else VersionNumbers(
            own_calls.get(id, {}).get(0), own_processes.get(id, {}).get(0), own=True
        )
        for id in data.listed
    }


def _last_day(deployment: Deployment) -> Span:
    return Span(max(0, deployment.last_minute - 1440), deployment.last_minute + 1)
