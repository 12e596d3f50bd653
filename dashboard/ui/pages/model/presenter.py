"""Overview of a model: verdict with its facts, charts with their marks, and deployments."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

from dashboard.common import clock
from dashboard.fleet.budgets import resolve_budgets
from dashboard.fleet.metrics.aggregate import (
    Clock,
    all_report_stalls,
    bin_calls,
    bin_processes,
    choose_clock,
)
from dashboard.regressions.evidence_reader import find_rank_divergence, read_onset
from dashboard.regressions.models import VerdictKind
from dashboard.ui.charts.deployment_lane import DeploymentLane
from dashboard.ui.charts.driving_charts import choose_large_charts
from dashboard.ui.charts.evidence_table import EvidenceRow, build_evidence_rows
from dashboard.ui.charts.fact_lines import FactLine, fact_lines
from dashboard.ui.charts.trends import Trend, TrendMark, build_trends, format_bin
from dashboard.ui.charts.version_styles import JUDGED, VersionStyle
from dashboard.ui.layout.answer import AnswerFact, count_job_ranks
from dashboard.ui.pages.model.overview_answer import build_overview_answer
from dashboard.ui.pages.model.queries import ModelData
from dashboard.ui.pages.model.version_lane import build_version_lane
from dashboard.ui.pages.model.versions_data import share_traffic
from dashboard.vocabulary import numbers
from dashboard.vocabulary.severity import ALERTING_VERDICTS


@dataclass
class ModelPage:
    """All data of the template."""

    facts: ModelData
    clock: Clock
    gpu_known: bool
    trends: list[Trend]
    marks: list[TrendMark]
    labels: dict[str, EvidenceRow]
    certain: list[FactLine] = field(default_factory=list)
    answer: list[AnswerFact] = field(default_factory=list)
    lane: DeploymentLane | None = None

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
    """The charts; `clock_asked` is wall or gpu if the URL requests it."""
    chosen: Clock = (
        "wall"
        if clock_asked == "wall"
        else "gpu"
        if clock_asked == "gpu"
        else choose_clock(facts.calls)
    )
    verdict = facts.standing.verdict
    evidence = build_evidence_rows(verdict.evidence, verdict=verdict.kind) if verdict else []
    return ModelPage(
        facts=facts,
        clock=chosen,
        gpu_known=any(row.gpu_count for row in facts.calls),
        trends=build_trends(
            window=facts.window,
            drawn=facts.drawn,
            calls=bin_calls(facts.calls, facts.window, chosen, all_report_stalls(facts.calls)),
            processes=bin_processes(facts.processes, facts.window),
            starts=facts.instances,
            clock=chosen,
            budget=resolve_budgets(facts.model).cold_start,
        ),
        marks=_marks(facts),
        labels=_labels(evidence),
    )


def add_answer(page: ModelPage, *, live: bool) -> None:
    """Adds what only the page shows: the facts of the verdict, and the deployments. `live`: the
    range ends now."""
    facts, standing = page.facts, page.facts.standing
    page.lane = build_version_lane(facts, share_traffic(facts.calls, facts.hourly))
    verdict, judged = standing.verdict, standing.judged
    if verdict is None or judged is None:
        return
    diverged = find_rank_divergence(verdict.evidence)
    page.answer = build_overview_answer(
        verdict,
        judged,
        facts.traffic,
        count_job_ranks(facts.instances, diverged.instances or ()) if diverged else None,
        live=live,
        alone=len(standing.latest) == 1,
    )
    page.certain = fact_lines(verdict.evidence, sentence=verdict.sentence)


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
    window, slots = facts.window, {version.id: version.slot for version in facts.drawn}
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
    verdict, window = facts.standing.verdict, facts.window
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


def tabulate_charts(page: ModelPage, drawn: Sequence[VersionStyle]) -> list[dict[str, Any]]:
    """The numbers of all charts, one table per version: one row per bin, one column per chart,
    without bins that have no report."""
    window = page.facts.window
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
