"""Process evidence: reads a row of evidence from the running state of a process metric. Such a row
belongs to no region."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any

from dashboard.regressions.judge.error_budget import ErrorBudget
from dashboard.regressions.judge.inputs import Arm, stratum_name
from dashboard.regressions.judge.pooled_estimate import Estimate, Group, log_to_change
from dashboard.regressions.judge.process.counts import MissSeries, StormSeries, sum_starts
from dashboard.regressions.judge.process.growth import GrowthSeries
from dashboard.regressions.judge.process.levels import LevelSeries, SingleValueSeries
from dashboard.regressions.judge.process.metrics import ProcessMetric
from dashboard.regressions.judge.process.series import ProcessTracks
from dashboard.regressions.judge.result import (
    Dot,
    Evidence,
    Label,
    NotCompared,
    Reason,
    sort_dots,
)
from dashboard.regressions.judge.settings import Settings
from dashboard.regressions.judge.strata_evidence import count_affected, list_strata, strata_differ
from dashboard.regressions.judge.verdict_policy import Track, Verdict, is_driving

NO_REGION = ""
ARMS: tuple[Arm, Arm] = ("baseline", "candidate")
LevelLikeSeries = LevelSeries | SingleValueSeries | GrowthSeries


def build_process_evidence(
    process: ProcessTracks, settings: Settings, budget: ErrorBudget, verdict: Verdict
) -> list[Evidence]:
    """One row per metric with data."""
    rows = []
    for series, track in process.entries:
        if isinstance(series, StormSeries):
            row = storm_row(series, track, verdict, process.early) if series.judged else None
        elif isinstance(series, MissSeries):
            row = miss_row(series, track, verdict)
        else:
            row = (
                level_row(series, track, settings, budget, verdict)
                if series.estimate or series.one_sided
                else None
            )
        if row is not None:
            rows.append(row)
    return rows


def list_processes_not_compared(process: ProcessTracks) -> tuple[NotCompared, ...]:
    """Process metrics that one version reports and the other, running at the same time, does
    not."""
    sides = [
        (series.metric.name, series)
        for series, _ in process.entries
        if isinstance(series, LevelSeries)
    ]
    return tuple(NotCompared(name, "one_sided", None) for name, series in sides if series.one_sided)


def build_row(
    metric: ProcessMetric,
    track: Track,
    verdict: Verdict,
    label: Label,
    reason: Reason,
    **found: Any,
) -> Evidence:
    """The fields that all rows share, with the given ones; absent values are None."""
    nothing: dict[str, Any] = dict.fromkeys(
        ("change", "low", "high", "bound", "smallest_visible", "tolerated")
    )
    return Evidence(
        metric=metric.name,
        region=NO_REGION,
        unit=metric.unit,
        label=label,
        reason=reason,
        judged=not metric.muted,
        muted=metric.muted,
        hard=metric.hard,
        drives=not metric.muted and is_driving(track, verdict),
        since=track.since,
        worse=1,
        **{**nothing, "strata": (), "causes": {}, "layouts": ("side_by_side",), **found},
    )


def level_row(
    series: LevelLikeSeries, track: Track, settings: Settings, budget: ErrorBudget, verdict: Verdict
) -> Evidence:
    """The row of a level, of a slope per hour, or of a number that an instance has once."""
    metric, estimate = series.metric, series.estimate
    effect = math.log1p(metric.smallest_effect)
    margin = series.margin(budget, "roll_back") if estimate else 0.0
    label, reason = level_label(estimate, effect, margin, series.one_sided)
    if label == "REGRESSED" and isinstance(series, GrowthSeries) and not series.is_confirmed():
        label, reason = "NOT ENOUGH DATA", "too_short"
    strata = list_strata(estimate, margin)
    level = baseline_level(series, estimate) if estimate else None
    # A slope is a change: percent per hour, not the factor of a level.
    said: Callable[[float], float] = log_to_change if isinstance(series, GrowthSeries) else math.exp
    found: dict[str, Any] = {
        "baseline": said(level) if level is not None else None,
        "candidate": said(level + estimate.delta) if level is not None and estimate else None,
        "smallest_effect": metric.smallest_effect,
        "baseline_instances": sum(change.baseline_instances for change in strata),
        "candidate_instances": sum(change.candidate_instances for change in strata),
        "affected_instances": count_affected(estimate, effect) if estimate else 0,
        "matched_minutes": series.matched_minutes,
        "strata_agreeing": sum(change.change * estimate.delta > 0 for change in strata)
        if estimate
        else 0,
        "strata": strata,
        "dots": level_dots(series, estimate, said),
    }
    if estimate:
        found |= build_interval(estimate, margin, series.bound())
        found["strata_differ"] = strata_differ(estimate, effect)
    if isinstance(series, LevelSeries):
        found["tolerated"] = series.metric.tolerated
    if is_last_day(series):
        found["layouts"] = ("last_day",)
    return build_row(metric, track, verdict, label, reason, **found)


def build_interval(estimate: Estimate, margin: float, bound: float | None) -> dict[str, Any]:
    """The change with its interval and bound, as relative changes."""
    return {
        "change": log_to_change(estimate.delta),
        "low": log_to_change(estimate.delta - margin),
        "high": log_to_change(estimate.delta + margin),
        "smallest_visible": log_to_change(margin),
        "bound": log_to_change(bound) if bound is not None else None,
    }


def is_last_day(series: LevelLikeSeries) -> bool:
    """True if the candidate was compared mainly with the baseline before its end."""
    if isinstance(series, LevelSeries):
        return 2 * series.after_end > series.matched_minutes
    return isinstance(series, GrowthSeries) and any(
        series.from_past(group.stratum) for group in series.groups
    )


def level_label(
    estimate: Estimate | None, effect: float, margin: float, one_sided: bool
) -> tuple[Label, Reason]:
    """The label at the level of certainty of ROLL BACK, and the reason if there is none."""
    if estimate is None:
        return "NOT ENOUGH DATA", "one_sided" if one_sided else "too_short"
    low, high = estimate.delta - margin, estimate.delta + margin
    if low > 0 and estimate.delta >= effect:
        return "REGRESSED", ""
    if high < 0 and estimate.delta <= -effect:
        return "IMPROVED", ""
    return ("NO CHANGE", "") if low > -effect and high < effect else ("NOT ENOUGH DATA", "too_wide")


def list_levels(series: LevelLikeSeries, arm: Arm, group: Group) -> dict[Any, tuple[float, int]]:
    """Log level and minutes of every instance of one arm that counts in the group."""
    counted = group.baseline if arm == "baseline" else group.candidate
    if isinstance(series, LevelSeries):
        totals = series.totals[arm][group.stratum]
        return {
            unit: (totals[unit].level / totals[unit].minutes, totals[unit].minutes)
            for unit in counted
        }
    if isinstance(series, GrowthSeries):
        grown = series.known(arm, group.stratum)
        return {
            unit: (number, series.metric.block_minutes * len(grown[unit]))
            for unit, number in counted.items()
        }
    return {unit: (number, 1) for unit, number in counted.items()}


def baseline_level(series: LevelLikeSeries, estimate: Estimate) -> float:
    """The baseline's log level, with strata weighted as in the change."""
    terms, weights = [], []
    for group in estimate.groups:
        levels = [level for level, _ in list_levels(series, "baseline", group).values()]
        weights.append(1.0 / group.k)
        terms.append(weights[-1] * math.fsum(levels) / len(levels))
    return math.fsum(terms) / math.fsum(weights)


def level_dots(
    series: LevelLikeSeries, estimate: Estimate | None, said: Callable[[float], float]
) -> tuple[Dot, ...]:
    """Every counted instance, in its stratum."""
    return sort_dots(
        [
            Dot(str(unit), arm, stratum_name(group.stratum), "", said(level), minutes)
            for group in (estimate.groups if estimate else ())
            for arm in ARMS
            for unit, (level, minutes) in list_levels(series, arm, group).items()
        ]
    )


def storm_row(
    series: StormSeries, track: Track, verdict: Verdict, early: Mapping[Arm, int]
) -> Evidence:
    """The row of events per hour, judged by affected instances. `early` events are in no rate and
    are shown separately."""
    label, reason = storm_label(series, track)
    return build_row(
        series.metric,
        track,
        verdict,
        label,
        reason,
        baseline=series.per_hour("baseline"),
        candidate=series.per_hour("candidate"),
        smallest_effect=series.metric.threshold,
        baseline_instances=len(series.baseline_judged),
        candidate_instances=len(series.judged),
        affected_instances=len(series.affected),
        matched_minutes=series.matched_minutes,
        strata_agreeing=len({stratum for stratum, _ in series.affected}),
        dots=storm_dots(series),
        window_minutes=series.metric.window_minutes,
        excluded_baseline=early["baseline"],
        excluded_candidate=early["candidate"],
    )


def storm_label(series: StormSeries, track: Track) -> tuple[Label, Reason]:
    """The label of the rule, and the reason if there is none."""
    if track.reading.regressed:
        return "REGRESSED", ""
    if series.undecided():
        return "NOT ENOUGH DATA", "baseline_affected"
    return "IMPROVED" if series.baseline_affected and not series.affected else "NO CHANGE", ""


def storm_dots(series: StormSeries) -> tuple[Dot, ...]:
    """Events per hour of every instance since the deployment."""
    return sort_dots(
        [
            Dot(
                str(unit),
                arm,
                stratum_name(stratum),
                "",
                60 * window.all_events / window.all_calls,
                window.all_calls,
            )
            for arm in ARMS
            for stratum, units in series.windows[arm].items()
            for unit, window in units.items()
        ]
    )


def miss_row(series: MissSeries, track: Track, verdict: Verdict) -> Evidence | None:
    """The row of the share of seconds that no cache served; None while an arm has no start."""
    found = series.missed
    if found is None:
        return None
    label: Label = (
        "REGRESSED"
        if track.reading.regressed
        else "NOT ENOUGH DATA"
        if found.matters
        else "NO CHANGE"
    )
    return build_row(
        series.metric,
        track,
        verdict,
        label,
        "too_wide" if label == "NOT ENOUGH DATA" else "",
        baseline=found.baseline,
        candidate=found.candidate,
        smallest_effect=series.metric.points,
        baseline_instances=found.baseline_instances,
        candidate_instances=found.candidate_instances,
        affected_instances=found.affected,
        matched_minutes=series.matched_minutes,
        strata_agreeing=found.strata,
        dots=miss_dots(series),
    )


def miss_dots(series: MissSeries) -> tuple[Dot, ...]:
    """The share of every instance with a known start; `n` is the number of compilations that
    queried a cache."""
    dots = []
    for arm in ARMS:
        for stratum, units in series.starts[arm].items():
            for unit, instances in units.items():
                sums = sum_starts(list(instances.values()))
                dots.append(
                    Dot(str(unit), arm, stratum_name(stratum), "", sums.share, sums.lookups)
                )
    return sort_dots(dots)
