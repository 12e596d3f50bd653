"""What the Model page says: banner, trends, versions, findings and compilations, from the facts it read."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from dashboard.alerts.models import Alert, AlertState
from dashboard.common import clock
from dashboard.fleet.budgets import budgets_of
from dashboard.fleet.metrics.aggregate import (
    CallGrid,
    Clock,
    ProcessGrid,
    callers_shared,
    calls_binned,
    calls_totals,
    clock_shared,
    processes_binned,
    processes_totals,
)
from dashboard.fleet.metrics.time_bins import Window
from dashboard.fleet.models import Deployment
from dashboard.regressions.models import VerdictKind
from dashboard.ui import words
from dashboard.ui.charts.evidence_table import EvidenceRow, evidence_rows
from dashboard.ui.charts.fact_lines import FactLine, fact_lines
from dashboard.ui.charts.top_evidence import Proof, proofs_chosen
from dashboard.ui.charts.trends import Mark, Trend, said_at, trends_built
from dashboard.ui.charts.version_styles import JUDGED, Drawn
from dashboard.ui.pages.caches import CachesTable, caches_table
from dashboard.ui.pages.cold_starts import Start, cold_starts
from dashboard.ui.pages.compilations import Compilation, compilations
from dashboard.ui.pages.findings_columns import Column, Latched, causes, findings_columns, latched_frames
from dashboard.ui.pages.instances_table import InstancesTable, instances_table
from dashboard.ui.pages.memory_table import MemoryRow, memory_rows
from dashboard.ui.pages.versions_table import ADOPTION_MINUTES, Numbers, VersionRow, version_rows
from dashboard.ui.selectors.model import ModelFacts

LOUD = (VerdictKind.ROLL_BACK, VerdictKind.WATCH)


@dataclass
class ModelPage:
    """Everything the template shows."""

    facts: ModelFacts
    clock: Clock
    gpu_known: bool
    evidence: list[EvidenceRow]
    certain: list[FactLine]
    proofs: list[Proof]
    alert: Alert | None
    trends: list[Trend]
    marks: list[Mark]
    labels: dict[str, EvidenceRow]
    versions: list[VersionRow]
    columns: list[Column]
    latched: list[Latched]
    compilations: list[Compilation]
    starts: list[Start]
    memory: list[MemoryRow]
    caches: CachesTable
    instances: InstancesTable
    versions_total: int = 0
    ranks_alert: int | None = None
    """The number of the open alert of the judged version, where ranks of a job diverged."""

    @property
    def judged(self) -> Drawn | None:
        """The version under judgement."""
        return next((version for version in self.facts.drawn if version.slot == JUDGED), None)

    @property
    def baseline(self) -> Drawn | None:
        """What it is compared with."""
        return next((version for version in self.facts.drawn if version.slot == 1), None)

    @property
    def silent(self) -> bool:
        """True where no version reported in the range."""
        return not self.facts.calls and not self.facts.processes

    @property
    def not_drawn(self) -> int:
        """Versions of the environment that the charts leave out: no report in the range, or more than six."""
        return len(self.facts.standing.latest) - len(self.facts.drawn)


def model_page(facts: ModelFacts, *, clock_asked: str = "") -> ModelPage:
    """Puts the page together; `clock_asked` is wall or gpu where the address says so."""
    chosen: Clock = "wall" if clock_asked == "wall" else "gpu" if clock_asked == "gpu" else clock_shared(facts.calls)
    standing, verdict = facts.standing, facts.standing.verdict
    evidence = evidence_rows(verdict.evidence, verdict=verdict.kind) if verdict else []
    judged, baseline = ((version.id, version.name) if version else None for version in (_slot(facts, 2), _slot(facts, 1)))
    columns = findings_columns(facts.findings, judged=judged, baseline=baseline)
    latched = latched_frames(facts.instances, [version.id for version in facts.drawn])
    by_cause = sorted(facts.alerts, key=lambda alert: alert.cause)  # that of a verdict before that of silence
    loud = verdict is not None and verdict.kind in LOUD
    trends, versions = _numbers_shown(facts, chosen, evidence)
    return ModelPage(
        facts=facts,
        clock=chosen,
        gpu_known=any(row.gpu_count for row in facts.calls),
        evidence=evidence,
        certain=fact_lines(verdict.evidence, sentence=verdict.sentence) if verdict else [],
        proofs=proofs_chosen(evidence, causes(latched, columns, judged[0] if judged else None)) if loud else [],
        alert=next((alert for alert in by_cause if _open_on(alert, standing.judged)), None),
        trends=trends,
        marks=_marks(facts),
        labels=_labels(evidence),
        versions=versions,
        columns=columns,
        latched=latched,
        compilations=compilations(facts.events, facts.drawn, facts.instances, facts.caches.compared),
        starts=cold_starts(facts.drawn, facts.instances, facts.caches),
        memory=memory_rows(facts.drawn, facts.memory),
        caches=caches_table(facts.drawn, facts.caches),
        instances=instances_table(facts.reporting, facts.drawn, clock.now()),
    )


def _numbers_shown(facts: ModelFacts, chosen: Clock, evidence: list[EvidenceRow]) -> tuple[list[Trend], list[VersionRow]]:
    """The charts and the table, from the same tallies."""
    window, standing = facts.asked.window, facts.standing
    calls = calls_binned(facts.calls, window, chosen, callers_shared((*facts.calls, *facts.own_calls)))
    processes = processes_binned(facts.processes, window)
    budget = budgets_of(facts.model).cold_start
    trends = trends_built(
        window=window, drawn=facts.drawn, calls=calls, processes=processes, starts=facts.instances, clock=chosen, budget=budget
    )
    rows = version_rows(
        deployments=standing.latest,
        verdicts=standing.verdicts,
        drawn=facts.drawn,
        numbers=_numbers(facts, calls, processes, chosen),
        shares=_shares(facts),
        instances=facts.instances,
        evidence=evidence,
        why_eager=facts.why_eager,
    )
    return trends, rows


def _open_on(alert: Alert, deployment: Deployment | None) -> bool:
    return deployment is not None and alert.deployment_id == deployment.pk and alert.state != AlertState.RESOLVED


def _slot(facts: ModelFacts, slot: int) -> Drawn | None:
    return next((version for version in facts.drawn if version.slot == slot), None)


def _labels(evidence: Iterable[EvidenceRow]) -> dict[str, EvidenceRow]:
    """The label of each chart: the judged row of its metric, the worst first."""
    labels: dict[str, EvidenceRow] = {}
    for row in evidence:
        if row.judged:
            labels.setdefault(row.trend, row)
    return labels


def _marks(facts: ModelFacts) -> list[Mark]:
    """Deployments, those that CI told of, and alerts of the range, oldest first."""
    window, slots = facts.asked.window, {version.id: version.slot for version in facts.drawn}
    known: set[int] = set()
    marks = []
    for deployment in reversed(facts.standing.deployments):
        again = " again" if deployment.version_id in known else ""
        known.add(deployment.version_id)
        if window.first < deployment.started_minute <= window.last:
            marks.append(
                Mark(deployment.started_minute, "deployment", f"{deployment.version.name}{again}", slots.get(deployment.version_id, 0))
            )
    for told in facts.posted:
        by = f" by {told.by}" if told.by else ""
        marks.append(Mark(clock.minute_of(told.at.timestamp()), "posted", f"CI: {told.version_name}{by}", link=told.link))
    for alert in facts.alerts:
        minute = clock.minute_of(alert.opened_at.timestamp())
        if window.first <= minute <= window.last:
            kind = "rollback" if alert.worst == VerdictKind.ROLL_BACK else "watch"
            marks.append(Mark(minute, kind, f"{_word(alert.worst)}, A-{alert.number}"))
    return sorted(marks, key=lambda mark: mark.minute)


def _word(kind: str) -> str:
    return VerdictKind(kind).label if kind in VerdictKind.values else kind


def _numbers(facts: ModelFacts, calls: CallGrid, processes: ProcessGrid, chosen: Clock) -> dict[int, Numbers]:
    """Each listed version in the range, or over its own last day where it had no report in the range."""
    day = Window(0, 1 << 40, 1 << 40)
    callers = callers_shared((*facts.calls, *facts.own_calls))
    own_calls, own_processes = calls_binned(facts.own_calls, day, chosen, callers), processes_binned(facts.own_processes, day)
    all_calls, all_processes = calls_totals(calls), processes_totals(processes)
    found = {}
    for id in facts.asked.tabled or facts.standing.listed:
        if id in calls or id in processes:
            found[id] = Numbers(all_calls.get(id), all_processes.get(id), own=False)
        else:
            found[id] = Numbers(own_calls.get(id, {}).get(0), own_processes.get(id, {}).get(0), own=True)
    return found


def _shares(facts: ModelFacts) -> dict[int, float]:
    """The share of the environment's calls that each version took in the newest minutes of the range."""
    step = 60 if facts.asked.hourly else 1
    newest = max((row.minute for row in facts.calls), default=0)
    since = newest - max(ADOPTION_MINUTES, step) + step
    counts: dict[int, int] = {}
    for row in facts.calls:
        if row.minute >= since:
            counts[row.version_id] = counts.get(row.version_id, 0) + row.calls
    total = sum(counts.values())
    return {id: counts.get(id, 0) / total for id in facts.standing.latest} if total else {}


def table_of(page: ModelPage, drawn: Sequence[Drawn]) -> list[dict[str, Any]]:
    """Every chart's numbers as one table a version: a row a bin, a column a chart; bins without a report are left out."""
    window = page.facts.asked.window
    charts = [trend for trend in page.trends if (trend.note or not trend.empty) and trend.key != "cold_start"]
    tables = []
    for version in drawn:
        lines = [next(line for line in trend.lines if line.slot == version.slot) for trend in charts]
        rows = [
            {
                "minute": start,
                "cells": [said_at(line, place) for line in lines],
                "so_far": start + window.step > clock.minute_of(clock.unix()),
            }
            for place, start in enumerate(window.starts())
            if any(said_at(line, place) for line in lines)
        ]
        heads = [f"{trend.title}, {trend.unit}" for trend in charts]
        tables.append({"version": version, "heads": heads, "rows": rows, "missing": words.number(window.count - len(rows))})
    return tables
