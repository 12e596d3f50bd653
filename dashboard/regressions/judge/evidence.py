"""Evidence: reads a row of evidence from the running state of a series."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

from dashboard.regressions.judge.buckets import find_bucket
from dashboard.regressions.judge.count_evidence import NO_INTERVAL, build_heading, count_row
from dashboard.regressions.judge.error_budget import ErrorBudget
from dashboard.regressions.judge.explained_by import attribute_causes
from dashboard.regressions.judge.inputs import stratum_name
from dashboard.regressions.judge.level_ratio import RatioSeries
from dashboard.regressions.judge.level_reading import (
    Finding,
    find_outlier,
    find_shown,
    is_alone,
)
from dashboard.regressions.judge.matched_cell import MatchedCell
from dashboard.regressions.judge.pool_groups import list_pool_hosts, read_pool
from dashboard.regressions.judge.pooled_estimate import (
    Estimate,
    log_to_change,
    log_to_level,
    t_quantile,
)
from dashboard.regressions.judge.pooled_regions import ALL_REGIONS, PooledRegions
from dashboard.regressions.judge.region_state import Region, Series
from dashboard.regressions.judge.result import (
    Dot,
    Evidence,
    Label,
    Reason,
    sort_dots,
)
from dashboard.regressions.judge.settings import Settings
from dashboard.regressions.judge.strata_evidence import (
    count_affected,
    list_dimension_changes,
    list_strata,
    strata_differ,
)
from dashboard.regressions.judge.verdict_policy import Track, Verdict

MOST_DOTS = 100
MISSED = 0.10
"""Part of the cases in which a change of the stated size is not detected."""


def build_region_evidence(
    region: Region, settings: Settings, budget: ErrorBudget, verdict: Verdict
) -> list[Evidence]:
    """One row per metric that is judged, or that has data and accompanies a judged one."""
    rows = []
    for series, track in region.entries:
        judged = region.is_judged(series.metric)
        if not judged and not series.matched_minutes:
            continue
        if isinstance(series, RatioSeries):
            if not series.metric.leads and not series.reported:
                continue
            rows.append(ratio_row(region, series, track, settings, budget, judged, verdict))
        else:
            rows.append(count_row(region, series, track, settings, budget, judged, verdict))
    muted = {series.metric.name for series, _ in region.entries if series.metric.muted}
    if region.quiet:
        rows = [replace(row, reason="not_called", drives=False) for row in rows]
    rows = [replace(row, muted=True) if row.metric in muted else row for row in rows]
    return attribute_causes(rows, {metric.name: metric.follows for metric in settings.metrics})


def build_pooled_evidence(
    pooled: PooledRegions, settings: Settings, budget: ErrorBudget, verdict: Verdict
) -> list[Evidence]:
    """The rows over all regions that lean."""
    of_all = Region(ALL_REGIONS, settings)
    return [
        ratio_row(of_all, series, track, settings, budget.pooled(), True, verdict)
        for series, track in pooled.entries
        if track.watching or track.driving
    ]


def ratio_row(
    region: Region,
    series: RatioSeries,
    track: Track,
    settings: Settings,
    budget: ErrorBudget,
    judged: bool,
    verdict: Verdict,
) -> Evidence:
    """The row of a level."""
    metric, shown = series.metric, find_shown(series, budget)
    estimate, margin = None, 0.0
    if shown is not None and not series.is_within_bucket:
        shown = show_recent(series, shown) if track.driving else shown
        estimate, margin = shown.estimate, shown.margin
    label, reason = ratio_label(series, margin)
    strata, effect = list_strata(series.estimate, margin), math.log1p(metric.smallest_effect)
    alone = label == "REGRESSED" and estimate is not None and is_alone(series, estimate)
    return Evidence(
        **build_heading(region, series, track, judged, verdict),
        label=label,
        reason=reason,
        **build_levels(series, estimate),
        **(build_interval(shown, settings) if shown and estimate else NO_INTERVAL),
        smallest_effect=metric.smallest_effect,
        tolerated=metric.tolerated,
        worse=metric.worse,
        baseline_instances=sum(change.baseline_instances for change in strata),
        candidate_instances=sum(change.candidate_instances for change in strata),
        affected_instances=count_affected(estimate, effect) if estimate else 0,
        matched_minutes=series.matched_minutes,
        strata_agreeing=sum(change.change * estimate.delta > 0 for change in strata)
        if estimate
        else 0,
        strata=strata if estimate else (),
        layouts=series.layouts,
        causes={},
        dots=() if series.is_within_bucket else ratio_dots(series),
        alone=alone,
        **(build_scope(series, shown, effect) if shown and estimate else {}),
        **build_outlier(series, budget, estimate, alone),
    )


def build_scope(series: RatioSeries, shown: Finding, effect: float) -> dict[str, Any]:
    """The window and the cohort that a change is of, whether cohorts disagree, and their changes in
    the dimension in which they do."""
    differ = strata_differ(shown.estimate, effect)
    found: dict[str, Any] = {"cohort": shown.cohort, "strata_differ": differ}
    found["window_minutes"] = shown.window_minutes
    if shown.cohort is not None:
        kind = shown.cohort.kind
        alike = [
            (kind, each.name, log_to_change(estimate.delta))
            for each, estimate in series.cohorts.items()
            if each.kind == kind
        ]
        alike.sort(key=lambda item: (-item[2], item[1]))
        if len(alike) > 1 and 2.0 * alike[-1][2] <= alike[0][2]:
            return {**found, "cohort_changes": tuple(alike)}
    changes = list_dimension_changes(shown.estimate) if differ else ()
    return {**found, "cohort_changes": changes}


def build_outlier(
    series: RatioSeries, budget: ErrorBudget, estimate: Estimate | None, alone: bool
) -> dict[str, Any]:
    """The instance that is far slower than the others, with its change; and the instance to
    at, with its host."""
    found = find_outlier(series, budget) if series.groups else None
    units = [
        (value - group.baseline_mean, str(unit), unit)
        for group in (estimate.groups if estimate else ())
        for unit, value in group.candidate.items()
    ]
    if found is None and not units:
        return {}
    odd = found.unit if found else max(units)[2] if alone or len(units) == 1 else None
    said: dict[str, Any] = {}
    if odd is not None:
        hosts = (cell.nodes.get(odd, "") for cell in series.cells.values())
        said = {"odd_instance": str(odd), "odd_host": next(filter(None, hosts), "")}
    if found:
        said |= {"outlier": str(found.unit), "outlier_change": log_to_change(found.change)}
    return said


def detectable(margin: float, effect: float, error: float, df: int) -> float:
    """The change that is detected in 90% of cases, on the log scale: the boundary of ROLL BACK and
    the quantile of the estimate's error above it."""
    return max(margin, effect) + t_quantile(df, MISSED) * error


def build_levels(series: RatioSeries, estimate: Estimate | None) -> dict[str, Any]:
    """The levels of both arms, and whether each is only the end of an engine's first bucket."""
    if estimate is None:
        return {"baseline": None, "candidate": None}
    level = series.metric.worse * baseline_level(series, estimate)
    candidate = level + series.metric.worse * estimate.delta
    return {
        "baseline": log_to_level(level),
        "candidate": log_to_level(candidate),
        "baseline_at_most": in_first_bucket(series, level),
        "candidate_at_most": in_first_bucket(series, candidate),
    }


def show_recent(series: RatioSeries, shown: Finding) -> Finding:
    """The finding of the last half hour, if the mean no longer shows the change that drives the
    verdict: a gross change drives it within minutes, and ends it half an hour later."""
    recent = series.recent.mean()
    if recent is None or shown.estimate.delta >= series.effect or recent <= shown.estimate.delta:
        return shown
    half_hour = shown.estimate._replace(delta=recent)
    return Finding(half_hour, shown.tail, shown.tail, series.settings.recent_minutes)


def build_interval(shown: Finding, settings: Settings) -> dict[str, Any]:
    """The change with its interval and bound, as relative changes. The last half hour has no
    interval, because its error is not estimated."""
    estimate, margin = shown.estimate, shown.margin
    timed = shown.window_minutes != settings.recent_minutes
    return {
        "change": log_to_change(estimate.delta),
        "low": log_to_change(estimate.delta - margin) if timed else None,
        "high": log_to_change(estimate.delta + margin) if timed else None,
        "bound": log_to_change(estimate.delta + estimate.margin(settings.healthy_alpha)),
        "smallest_visible": log_to_change(margin),
    }


def in_first_bucket(series: RatioSeries, level: float) -> bool:
    """True if a log level lies in an engine's first bucket, where only the end of the bucket is
    known."""
    known = [cell.bounds for cell in series.cells.values() if cell.bounds]
    return any(math.isinf(find_bucket(level, bounds)[0]) for bounds in known)


def ratio_label(series: RatioSeries, margin: float) -> tuple[Label, Reason]:
    """The label at the level of certainty of ROLL BACK, and the reason if there is none."""
    estimate = series.estimate
    if estimate is None:
        return (
            "NOT ENOUGH DATA",
            "too_short"
            if series.matched_minutes
            else "one_sided"
            if series.one_sided
            else "too_few_calls",
        )
    if series.is_within_bucket:
        return "NOT ENOUGH DATA", "bucket_too_wide"
    effect = math.log1p(series.metric.smallest_effect)
    low, high = estimate.delta - margin, estimate.delta + margin
    if low > 0 and estimate.delta >= effect:
        return "REGRESSED", ""
    if high < 0 and estimate.delta <= -effect:
        return "IMPROVED", ""
    if low > -effect and high < effect:
        return "NO CHANGE", ""
    return "NOT ENOUGH DATA", "too_wide"


def baseline_level(series: RatioSeries, estimate: Estimate) -> float:
    """The baseline's log level over the compared strata, weighted as in the change."""
    terms, weights = [], []
    for group in estimate.groups:
        cells = [cell for (stratum, _), cell in series.cells.items() if stratum == group.stratum]
        found = [
            (cell.traffic.baseline, levels)
            for cell in cells
            if (levels := baseline_levels(series, cell, group.day_share == 1.0))
        ]
        for calls, levels in found:
            weights.append(calls / sum(each for each, _ in found) / group.k)
            terms.append(weights[-1] * math.fsum(levels) / len(levels))
    return math.fsum(terms) / math.fsum(weights)


def baseline_levels(series: RatioSeries, cell: MatchedCell, past: bool) -> list[float]:
    """The baseline's mean log level per instance of a cell; with `past`, the levels that the past
    predicts."""
    if past:
        return [
            (total.level - total.difference) / total.minutes
            for total in series.past_of(cell).values()
        ]
    return [total.level / total.minutes for total in cell.baseline.values()]


def ratio_dots(series: RatioSeries) -> tuple[Dot, ...]:
    """Every instance in each cell in which it was matched, and every host that was compared with
    its past or is in the pool."""
    dots = []
    for (stratum, bucket), cell in series.cells.items():
        found = [
            ("baseline", unit, total.level, total.minutes) for unit, total in cell.baseline.items()
        ]
        found += [
            ("candidate", unit, total.level, total.minutes)
            for unit, total in cell.candidate.items()
        ]
        pool = read_pool(cell, series.slope)
        found += list_pool_hosts(cell, pool)
        for unit, total in series.past_of(cell).items():
            found.append(("candidate", unit, total.level, total.minutes))
            if unit not in pool:
                past = total.level - total.difference
                found.append(("baseline", unit, past, total.minutes))
        for arm, unit, level, minutes in found:
            dots.append(
                Dot(
                    str(unit),
                    arm,
                    stratum_name(stratum),
                    bucket,
                    log_to_level(series.metric.worse * level / minutes),
                    minutes,
                )
            )
    return sort_dots(dots)


def limit_dots(row: Evidence) -> Evidence:
    """The row with at most as many dots per arm as a database row should hold, spread evenly from
    the lowest to the highest value."""
    kept: list[Dot] = []
    for arm in ("baseline", "candidate"):
        dots = sorted(
            (dot for dot in row.dots if dot.arm == arm),
            key=lambda dot: (dot.value, dot.stratum, dot.instance, dot.bucket),
        )
        step = (len(dots) - 1) / (MOST_DOTS - 1)
        kept += (
            dots
            if len(dots) <= MOST_DOTS
            else [dots[round(step * number)] for number in range(MOST_DOTS)]
        )
    return (
        replace(row, dots=sort_dots(kept), dots_left_out=len(row.dots) - len(kept))
        if len(kept) < len(row.dots)
        else row
    )


def find_judged_level(region: Region, series: Series) -> RatioSeries | None:
    """The series if it measures call time and is judged."""
    return (
        series
        if isinstance(series, RatioSeries)
        and series.metric.leads
        and region.is_judged(series.metric)
        else None
    )
