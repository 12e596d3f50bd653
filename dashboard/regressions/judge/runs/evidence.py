"""Run evidence: rows of evidence of a run comparison; each dot is a run."""

from __future__ import annotations

import math

from dashboard.regressions.judge.count_evidence import NO_INTERVAL, rate_label
from dashboard.regressions.judge.explained_by import attribute_causes
from dashboard.regressions.judge.inputs import stratum_name
from dashboard.regressions.judge.pooled_estimate import log_to_change, log_to_level
from dashboard.regressions.judge.result import (
    Dot,
    Evidence,
    Label,
    Reason,
    StratumChange,
    sort_dots,
)
from dashboard.regressions.judge.runs.comparison import LEAST_RUNS, Change, RunComparison
from dashboard.regressions.judge.runs.count_change import CountChange
from dashboard.regressions.judge.runs.level_change import LevelChange


def build_run_evidence(runs: RunComparison) -> list[Evidence]:
    """One row per metric that is judged, or that has data and is muted or replaced."""
    rows: list[Evidence] = []
    follows = {metric.name: metric.follows for metric in runs.settings.metrics}
    for region in sorted({change.region for change in runs.changes}):
        here = [change for change in runs.changes if change.region == region]
        rows += attribute_causes([build_row(runs, change) for change in here], follows)
    return rows


def build_row(runs: RunComparison, change: Change) -> Evidence:
    """The row of one change."""
    return _level_row(runs, change) if isinstance(change, LevelChange) else _count_row(runs, change)


def _drives(runs: RunComparison, change: Change) -> bool:
    if not any(each is change for each in runs.judged):
        return False
    if runs.verdict == "roll_back":
        return runs.asks_for_roll_back(change)
    return runs.verdict == "watch" and runs.leans(change)


def _level_row(runs: RunComparison, change: LevelChange) -> Evidence:
    metric, margin = change.metric, change.margin(runs.tail(runs.settings.roll_back_alpha))
    label, reason = _level_label(runs, change, margin)
    effect = math.log1p(metric.smallest_effect)
    affected = {
        run
        for group in change.groups
        for run, value in group.candidate.items()
        if value - group.baseline_mean >= effect
    }
    hidden = change.is_within_bucket
    sign, bound = metric.worse, change.margin(runs.settings.healthy_alpha)
    interval = (
        NO_INTERVAL
        if hidden
        else {
            "change": log_to_change(change.delta),
            "low": log_to_change(change.delta - margin),
            "high": log_to_change(change.delta + margin),
            "bound": log_to_change(change.delta + bound),
            "smallest_visible": log_to_change(margin),
        }
    )
    return Evidence(
        metric=metric.name,
        region=change.region,
        unit=metric.unit,
        label=label,
        reason=reason,
        judged=runs.is_judged(change),
        hard=metric.hard,
        drives=_drives(runs, change),
        since=find_first_minute(runs) if label == "REGRESSED" or _drives(runs, change) else None,
        baseline=None if hidden else log_to_level(sign * change.level),
        candidate=None if hidden else log_to_level(sign * (change.level + change.delta)),
        **interval,
        smallest_effect=metric.smallest_effect,
        tolerated=metric.tolerated,
        worse=metric.worse,
        baseline_instances=change.baseline_runs,
        candidate_instances=change.candidate_runs,
        affected_instances=len(affected),
        matched_minutes=count_steady_minutes(runs),
        strata_agreeing=sum(group.delta * change.delta > 0 for group in change.groups),
        strata=tuple(
            StratumChange(
                stratum_name(group.stratum),
                log_to_change(group.delta),
                len(group.baseline),
                len(group.candidate),
            )
            for group in change.groups
        ),
        layouts=("run_against_run",),
        causes={},
        dots=_level_dots(runs, change),
        muted=metric.muted,
        alone=label == "REGRESSED" and change.is_alone,
    )


def _level_label(runs: RunComparison, change: LevelChange, margin: float) -> tuple[Label, Reason]:
    if change.is_within_bucket:
        return "NOT ENOUGH DATA", "bucket_too_wide"
    if change.baseline_runs < LEAST_RUNS:
        return "NOT ENOUGH DATA", "too_few_runs"
    effect = math.log1p(change.metric.smallest_effect)
    low, high = change.delta - margin, change.delta + margin
    if runs.is_regressed(change):
        return "REGRESSED", ""
    if high < 0 and change.delta <= -effect:
        return "IMPROVED", ""
    if low > -effect and high < effect:
        return "NO CHANGE", ""
    return "NOT ENOUGH DATA", "too_wide"


def _level_dots(runs: RunComparison, change: LevelChange) -> tuple[Dot, ...]:
    minutes = {steady.run.unit: steady.minutes for steady in (*runs.baseline, *runs.candidate)}
    return sort_dots(
        [
            Dot(
                unit,
                arm,
                stratum_name(stratum),
                bucket,
                log_to_level(change.metric.worse * level),
                minutes[unit],
            )
            for (stratum, bucket), cell in change.cells.items()
            for arm, side in (("baseline", cell.baseline), ("candidate", cell.candidate))
            for unit, level in side.items()
        ]
    )


def _count_row(runs: RunComparison, change: CountChange) -> Evidence:
    metric, rate = change.metric, change.rate
    margin = rate.margin(runs.tail(runs.settings.roll_back_alpha))
    enough = change.baseline_runs >= LEAST_RUNS
    label: Label = "NOT ENOUGH DATA"
    reason: Reason = "too_few_runs"
    if enough:
        label, reason = (
            ("REGRESSED", "") if runs.is_regressed(change) else rate_label(metric, rate, margin)
        )
    interval = (
        {
            "change": log_to_change(rate.delta),
            "low": log_to_change(rate.delta - margin),
            "high": log_to_change(rate.delta + margin),
            "bound": log_to_change(rate.delta + rate.margin(runs.settings.healthy_alpha)),
            "smallest_visible": log_to_change(margin),
        }
        if rate.base_events
        else NO_INTERVAL
    )
    affected = {
        run.unit
        for run in change.runs
        if run.arm == "candidate"
        and run.share >= metric.times * rate.baseline
        and run.share - rate.baseline >= metric.points
    }
    return Evidence(
        metric=metric.name,
        region=change.region,
        unit=metric.unit,
        label=label,
        reason=reason,
        judged=runs.is_judged(change),
        hard=metric.hard,
        drives=_drives(runs, change),
        since=find_first_minute(runs) if label == "REGRESSED" or _drives(runs, change) else None,
        baseline=rate.baseline,
        candidate=rate.share,
        **interval,
        smallest_effect=metric.times - 1.0,
        tolerated=metric.tolerated,
        worse=1,
        baseline_instances=change.baseline_runs,
        candidate_instances=change.candidate_runs,
        affected_instances=len(affected),
        matched_minutes=count_steady_minutes(runs),
        strata_agreeing=0,
        strata=(),
        layouts=("run_against_run",),
        causes=change.causes,
        dots=sort_dots(
            [
                Dot(run.unit, run.arm, stratum_name(run.stratum), "", run.share, run.calls)
                for run in change.runs
            ]
        ),
        muted=metric.muted,
        rule="rate" if label == "REGRESSED" else "",
        times=metric.times,
        points=metric.points,
    )


def find_first_minute(runs: RunComparison) -> int:
    """The start of the candidate's first run."""
    return min(steady.run.first_minute for steady in runs.candidate)


def count_steady_minutes(runs: RunComparison) -> int:
    """The candidate's compared minutes, of all runs together."""
    return sum(steady.minutes for steady in runs.candidate)
