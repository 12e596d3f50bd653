"""Run evidence: rows of evidence of a run comparison; each dot is a run."""

from __future__ import annotations

import math
from typing import Any

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

Row = dict[str, Any]


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


def _build_heading(runs: RunComparison, change: Change, label: Label, reason: Reason) -> Row:
    """The fields that rows of levels and of counts share."""
    metric, drives = change.metric, _drives(runs, change)
    return {
        "metric": metric.name,
        "region": change.region,
        "unit": metric.unit,
        "label": label,
        "reason": reason,
        "judged": runs.is_judged(change),
        "hard": metric.hard,
        "drives": drives,
        "since": find_first_minute(runs) if label == "REGRESSED" or drives else None,
        "tolerated": metric.tolerated,
        "baseline_instances": change.baseline_runs,
        "candidate_instances": change.candidate_runs,
        "matched_minutes": count_steady_minutes(runs),
        "layouts": ("run_against_run",),
        "muted": metric.muted,
    }


def _build_interval(delta: float, margin: float, bound: float) -> Row:
    """The change with its interval and bound, as relative changes."""
    return {
        "change": log_to_change(delta),
        "low": log_to_change(delta - margin),
        "high": log_to_change(delta + margin),
        "bound": log_to_change(delta + bound),
        "smallest_visible": log_to_change(margin),
    }


def _level_row(runs: RunComparison, change: LevelChange) -> Evidence:
    metric, margin = change.metric, change.margin(runs.tail(runs.settings.roll_back_alpha))
    label, reason = _level_label(runs, change, margin)
    hidden, sign = change.is_within_bucket, metric.worse
    bound = change.margin(runs.settings.healthy_alpha)
    return Evidence(
        **_build_heading(runs, change, label, reason),
        **(NO_INTERVAL if hidden else _build_interval(change.delta, margin, bound)),
        baseline=None if hidden else log_to_level(sign * change.level),
        candidate=None if hidden else log_to_level(sign * (change.level + change.delta)),
        smallest_effect=metric.smallest_effect,
        worse=metric.worse,
        affected_instances=_count_affected(change),
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
        causes={},
        dots=_level_dots(runs, change),
        alone=(label == "REGRESSED" or _drives(runs, change)) and change.is_alone,
    )


def _count_affected(change: LevelChange) -> int:
    """Number of the candidate's runs at least the smallest effect above the baseline's mean."""
    effect = math.log1p(change.metric.smallest_effect)
    return len(
        {
            run
            for group in change.groups
            for run, value in group.candidate.items()
            if value - group.baseline_mean >= effect
        }
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
    bound = rate.margin(runs.settings.healthy_alpha)
    label, reason = _count_label(runs, change, margin)
    affected = {run.unit for run in change.runs if change.is_higher(run, rate.baseline)}
    return Evidence(
        **_build_heading(runs, change, label, reason),
        **(_build_interval(rate.delta, margin, bound) if rate.base_events else NO_INTERVAL),
        baseline=rate.baseline,
        candidate=rate.share,
        smallest_effect=metric.times - 1.0,
        worse=1,
        affected_instances=len(affected),
        strata_agreeing=0,
        strata=(),
        causes=change.causes,
        dots=sort_dots(
            [
                Dot(run.unit, run.arm, stratum_name(run.stratum), "", run.share, run.calls)
                for run in change.runs
            ]
        ),
        rule="rate" if label == "REGRESSED" else "",
        times=metric.times,
        points=metric.points,
    )


def _count_label(runs: RunComparison, change: CountChange, margin: float) -> tuple[Label, Reason]:
    if change.baseline_runs < LEAST_RUNS:
        return "NOT ENOUGH DATA", "too_few_runs"
    if runs.is_regressed(change):
        return "REGRESSED", ""
    return rate_label(change.metric, change.rate, margin)


def find_first_minute(runs: RunComparison) -> int:
    """The start of the candidate's first run."""
    return min(steady.run.first_minute for steady in runs.candidate)


def count_steady_minutes(runs: RunComparison) -> int:
    """The candidate's compared minutes, of all runs together."""
    return sum(steady.minutes for steady in runs.candidate)
