"""Model page: banner, trends, versions, findings and compilations."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from dashboard.alerts.models import Alert, AlertState
from dashboard.common import clock
from dashboard.fleet.budgets import resolve_budgets
from dashboard.fleet.metrics.aggregate import (
    CallGrid,
    Clock,
    ProcessGrid,
    all_report_stalls,
    bin_calls,
    bin_processes,
    choose_clock,
    sum_call_bins,
    sum_process_bins,
)
from dashboard.fleet.metrics.time_bins import TimeBins
from dashboard.fleet.models import Deployment
from dashboard.regressions.evidence_reader import read_onset
from dashboard.regressions.models import VerdictKind
from dashboard.ui.charts.driving_charts import choose_large_charts
from dashboard.ui.charts.evidence_table import EvidenceRow, build_evidence_rows
from dashboard.ui.charts.fact_lines import FactLine, fact_lines
from dashboard.ui.charts.top_evidence import TopEvidence, select_top_evidence
from dashboard.ui.charts.trends import Trend, TrendMark, build_trends, format_bin
from dashboard.ui.charts.version_styles import JUDGED, VersionStyle
from dashboard.ui.pages.findings.columns import (
    EagerFallback,
    FindingsColumn,
    findings_columns,
    list_causes,
    list_eager_fallbacks,
)
from dashboard.ui.pages.instances.table import InstancesTable, instances_table
from dashboard.ui.pages.model.caches_table import CachesTable, caches_table
from dashboard.ui.pages.model.cold_starts import VersionStart, cold_starts
from dashboard.ui.pages.model.compilations import Compilation, compilations
from dashboard.ui.pages.model.memory_table import MemoryRow, memory_rows
from dashboard.ui.pages.model.queries import ModelData
from dashboard.ui.pages.model.versions_table import (
    ADOPTION_MINUTES,
    VersionNumbers,
    VersionRow,
    version_rows,
)
from dashboard.vocabulary import numbers
from dashboard.vocabulary.severity import ALERTING_VERDICTS


@dataclass
class ModelPage:
    """All data of the template."""

    facts: ModelData
    clock: Clock
    gpu_known: bool
    evidence: list[EvidenceRow]
    certain: list[FactLine]
    proofs: list[TopEvidence]
    alert: Alert | None
    trends: list[Trend]
    marks: list[TrendMark]
    labels: dict[str, EvidenceRow]
    versions: list[VersionRow]
    columns: list[FindingsColumn]
    latched: list[EagerFallback]
    compilations: list[Compilation]
    starts: list[VersionStart]
    memory: list[MemoryRow]
    caches: CachesTable
    instances: InstancesTable
    versions_total: int = 0
    ranks_alert: int | None = None
    """The number of the open alert about diverged ranks of the evaluated version."""

    @property
    def onset_said(self) -> str:
        """The onset that the charts show as a band; empty if there is none."""
        found = next((mark for mark in self.marks if mark.until is not None), None)
        if found is None:
            return ""
        between = clock.format_minutes_between(found.minute, found.last or found.minute)
        return f"The regression began {between}."

    @property
    def charts(self) -> dict[str, list[Trend]]:
        """The charts by size: those behind the verdict are large."""
        large, small = choose_large_charts(self.trends, self.labels)
        return {"large": large, "small": small}

    @property
    def judged(self) -> VersionStyle | None:
        """The evaluated version."""
        return next((version for version in self.facts.drawn if version.slot == JUDGED), None)

    @property
    def baseline(self) -> VersionStyle | None:
        """The baseline of the evaluated version."""
        return next((version for version in self.facts.drawn if version.slot == 1), None)

    @property
    def silent(self) -> bool:
        """True where no version reported in the range."""
        return not self.facts.calls and not self.facts.processes

    @property
    def not_drawn(self) -> int:
        """Number of versions that the charts omit: no report in the range, or beyond the limit of
        six."""
        return len(self.facts.standing.latest) - len(self.facts.drawn)


def model_page(facts: ModelData, *, clock_asked: str = "") -> ModelPage:
    """Builds the page; `clock_asked` is wall or gpu if the URL requests it."""
    chosen: Clock = (
        "wall"
        if clock_asked == "wall"
        else "gpu"
        if clock_asked == "gpu"
        else choose_clock(facts.calls)
    )
    standing, verdict = facts.standing, facts.standing.verdict
    evidence = build_evidence_rows(verdict.evidence, verdict=verdict.kind) if verdict else []
    judged, baseline = (
        (version.id, version.name) if version else None
        for version in (_slot(facts, 2), _slot(facts, 1))
    )
    columns = findings_columns(facts.findings, judged=judged, baseline=baseline)
    latched = list_eager_fallbacks(facts.instances, [version.id for version in facts.drawn])
    by_cause = sorted(
        facts.alerts, key=lambda alert: alert.cause
    )  # the alert of a verdict precedes the alert of silence
    loud = verdict is not None and verdict.kind in ALERTING_VERDICTS
    trends, versions = _numbers_shown(facts, chosen, evidence)
    return ModelPage(
        facts=facts,
        clock=chosen,
        gpu_known=any(row.gpu_count for row in facts.calls),
        evidence=evidence,
        certain=fact_lines(verdict.evidence, sentence=verdict.sentence) if verdict else [],
        proofs=select_top_evidence(
            evidence, list_causes(latched, columns, judged[0] if judged else None)
        )
        if loud
        else [],
        alert=next((alert for alert in by_cause if _open_on(alert, standing.judged)), None),
        trends=trends,
        marks=_marks(facts),
        labels=_labels(evidence),
        versions=versions,
        columns=columns,
        latched=latched,
        compilations=compilations(
            facts.events, facts.drawn, facts.instances, facts.caches.compared
        ),
        starts=cold_starts(facts.drawn, facts.instances, facts.caches),
        memory=memory_rows(facts.drawn, facts.memory),
        caches=caches_table(facts.drawn, facts.caches),
        instances=instances_table(facts.reporting, facts.drawn, clock.now()),
    )


def _numbers_shown(
    facts: ModelData, chosen: Clock, evidence: list[EvidenceRow]
) -> tuple[list[Trend], list[VersionRow]]:
    """The charts and the table, from the same sums."""
    window, standing = facts.asked.window, facts.standing
    calls = bin_calls(
        facts.calls, window, chosen, all_report_stalls((*facts.calls, *facts.own_calls))
    )
    processes = bin_processes(facts.processes, window)
    budget = resolve_budgets(facts.model).cold_start
    trends = build_trends(
        window=window,
        drawn=facts.drawn,
        calls=calls,
        processes=processes,
        starts=facts.instances,
        clock=chosen,
        budget=budget,
    )
    rows = version_rows(
        deployments=standing.latest,
        verdicts=standing.verdicts,
        drawn=facts.drawn,
        by_version=_numbers(facts, calls, processes, chosen),
        shares=_shares(facts),
        instances=facts.instances,
        evidence=evidence,
        why_eager=facts.why_eager,
    )
    return trends, rows


def _open_on(alert: Alert, deployment: Deployment | None) -> bool:
    return (
        deployment is not None
        and alert.deployment_id == deployment.pk
        and alert.state != AlertState.RESOLVED
    )


def _slot(facts: ModelData, slot: int) -> VersionStyle | None:
    return next((version for version in facts.drawn if version.slot == slot), None)


def _labels(evidence: Iterable[EvidenceRow]) -> dict[str, EvidenceRow]:
    """The label of each chart: the evaluated row of its metric, the worst row if there are
    several."""
    labels: dict[str, EvidenceRow] = {}
    for row in evidence:
        if row.judged:
            labels.setdefault(row.trend, row)
    return labels


def _marks(facts: ModelData) -> list[TrendMark]:
    """Deployments, deployments that CI reported, and alerts of the range, oldest first."""
    window, slots = facts.asked.window, {version.id: version.slot for version in facts.drawn}
    known: set[int] = set()
    marks = []
    for deployment in reversed(facts.standing.deployments):
        again = " again" if deployment.version_id in known else ""
        known.add(deployment.version_id)
        if window.first < deployment.started_minute <= window.last:
            marks.append(
                TrendMark(
                    deployment.started_minute,
                    "deployment",
                    f"{deployment.version.name}{again}",
                    slots.get(deployment.version_id, 0),
                )
            )
    for told in facts.posted:
        by = f" by {told.by}" if told.by else ""
        marks.append(
            TrendMark(
                clock.minute_of(told.at.timestamp()),
                "posted",
                f"CI: {told.version_name}{by}",
                link=told.link,
                short=told.version_name,
            )
        )
    for alert in facts.alerts:
        minute = clock.minute_of(alert.opened_at.timestamp())
        if window.first <= minute <= window.last:
            kind = "rollback" if alert.worst == VerdictKind.ROLL_BACK else "watch"
            marks.append(
                TrendMark(
                    minute,
                    kind,
                    f"{_word(alert.worst)}, A-{alert.number}",
                    short=f"A-{alert.number}",
                )
            )
    marks += _onset_marks(facts)
    return sorted(marks, key=lambda mark: mark.minute)


def _onset_marks(facts: ModelData) -> list[TrendMark]:
    """The onset of the change behind the current verdict, if it is known and in the range."""
    verdict, window = facts.standing.verdict, facts.asked.window
    onset = read_onset(verdict.evidence) if verdict else None
    if verdict is None or onset is None:
        return []
    earliest, latest = onset
    if verdict.kind not in ALERTING_VERDICTS or latest < window.first or earliest > window.last:
        return []
    kind = "rollback_onset" if verdict.kind == VerdictKind.ROLL_BACK else "watch_onset"
    return [TrendMark(earliest, kind, "onset of the regression", JUDGED, until=latest + 1)]


def _word(kind: str) -> str:
    return VerdictKind(kind).label if kind in VerdictKind.values else kind


def _numbers(
    facts: ModelData, calls: CallGrid, processes: ProcessGrid, chosen: Clock
) -> dict[int, VersionNumbers]:
    """Numbers of each listed version in the range; without a report in the range, of its last
    active day."""
    day = TimeBins(0, 1 << 40, 1 << 40)
    callers = all_report_stalls((*facts.calls, *facts.own_calls))
    own_calls, own_processes = (
        bin_calls(facts.own_calls, day, chosen, callers),
        bin_processes(facts.own_processes, day),
    )
    all_calls, all_processes = sum_call_bins(calls), sum_process_bins(processes)
    found = {}
    for id in facts.asked.tabled or facts.standing.listed:
        if id in calls or id in processes:
            found[id] = VersionNumbers(all_calls.get(id), all_processes.get(id), own=False)
        else:
            found[id] = VersionNumbers(
                own_calls.get(id, {}).get(0), own_processes.get(id, {}).get(0), own=True
            )
    return found


def _shares(facts: ModelData) -> dict[int, float]:
    """Each version's share of the environment's calls in the newest minutes of the range."""
    step = 60 if facts.asked.hourly else 1
    newest = max((row.minute for row in facts.calls), default=0)
    since = newest - max(ADOPTION_MINUTES, step) + step
    counts: dict[int, int] = {}
    for row in facts.calls:
        if row.minute >= since:
            counts[row.version_id] = counts.get(row.version_id, 0) + row.calls
    total = sum(counts.values())
    return {id: counts.get(id, 0) / total for id in facts.standing.latest} if total else {}


def tabulate_charts(page: ModelPage, drawn: Sequence[VersionStyle]) -> list[dict[str, Any]]:
    """The numbers of all charts, one table per version: one row per bin, one column per chart,
    without bins that have no report."""
    window = page.facts.asked.window
    charts = [
        trend
        for trend in page.trends
        if (trend.note or not trend.empty) and trend.key != "cold_start"
    ]
    tables = []
    for version in drawn:
        lines = [
            next(line for line in trend.lines if line.slot == version.slot) for trend in charts
        ]
        rows = [
            {
                "minute": start,
                "cells": [format_bin(line, place) for line in lines],
                "so_far": start + window.step > clock.minute_of(clock.unix()),
            }
            for place, start in enumerate(window.starts())
            if any(format_bin(line, place) for line in lines)
        ]
        heads = [f"{trend.title}, {trend.unit}" for trend in charts]
        tables.append(
            {
                "version": version,
                "heads": heads,
                "rows": rows,
                "missing": numbers.number(window.count - len(rows)),
            }
        )
    return tables
