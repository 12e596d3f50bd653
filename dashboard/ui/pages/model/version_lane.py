"""Deployment lane of a model: one row per version, its verdicts as spans of time."""

from __future__ import annotations

from collections.abc import Mapping

from dashboard.alerts.models import Alert
from dashboard.fleet.models import Deployment
from dashboard.ui.charts.deployment_lane import (
    BASELINE,
    HEALTHY,
    NOT_ENOUGH_DATA,
    DeploymentLane,
    LaneRow,
    LaneSpan,
    build_deployment_lane,
)
from dashboard.ui.pages.model.queries import ModelData, VerdictChange
from dashboard.vocabulary import numbers


def build_version_lane(facts: ModelData, shares: Mapping[int, float]) -> DeploymentLane | None:
    """The lane over the range of the charts, newest version first; None without a deployment in
    the range."""
    window = facts.window
    baseline = facts.standing.baseline
    rows = []
    for version in facts.drawn:
        runs = [
            row
            for row in facts.standing.deployments
            if row.version_id == version.id
            and row.started_minute < window.last
            and (row.ended_minute is None or row.ended_minute > window.first)
        ]
        if not runs:
            continue
        is_baseline = baseline is not None and version.id == baseline.pk
        spans = [
            span
            for run in sorted(runs, key=lambda run: run.started_minute)
            for span in _spans(run, facts, is_baseline, shares.get(version.id))
        ]
        ids = {run.pk for run in runs}
        rows.append(LaneRow(version.name, spans, alerts=_alerts(facts.alerts, ids)))
    if not rows:
        return None
    return build_deployment_lane(rows, window.first, window.last, "version")


def _spans(
    run: Deployment, facts: ModelData, is_baseline: bool, share: float | None
) -> list[LaneSpan]:
    """One span per verdict. Without a verdict, the baseline is marked as such."""
    end = facts.window.last if run.ended_minute is None else run.ended_minute
    state = BASELINE if is_baseline else NOT_ENOUGH_DATA
    changes: list[VerdictChange] = [
        one for one in facts.changes if one.deployment_id == run.pk and one.minute < end
    ]
    starts = [(run.started_minute, state)]
    for one in changes:
        # HEALTHY is about a time before its evaluation; other verdicts begin with theirs.
        healthy = one.kind == HEALTHY and one.since_minute is not None
        minute = one.since_minute if healthy and one.since_minute else one.minute
        kind = BASELINE if is_baseline and one.kind == NOT_ENOUGH_DATA else one.kind
        if kind != starts[-1][1]:
            starts.append((max(minute, starts[-1][0]), kind))
    ends = [minute for minute, _ in starts[1:]] + [end]
    spans = []
    for (start, kind), until in zip(starts, ends, strict=True):
        now = until == end and run.ended_minute is None and share is not None
        text = (
            f"{numbers.percent(share)} of traffic"
            if now and share is not None
            else numbers.format_coarse_duration((until - start) * 60)
            if start >= facts.window.first
            else ""
        )
        if until > start:
            spans.append(LaneSpan(start, until, kind, text))
    return spans


def _alerts(alerts: list[Alert], deployments: set[int]) -> list[tuple[int, str]]:
    return [
        (int(alert.opened_at.timestamp() // 60), alert.worst)
        for alert in alerts
        if alert.deployment_id in deployments
    ]
