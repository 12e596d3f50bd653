"""Next step: the cheapest step that improves detection."""

from __future__ import annotations

import math
from dataclasses import replace

from dashboard.regressions.judge.affected_instances import AffectedSeries
from dashboard.regressions.judge.comparison import Comparison
from dashboard.regressions.judge.error_budget import ErrorBudget
from dashboard.regressions.judge.evidence import detectable
from dashboard.regressions.judge.inputs import Stratum, stratum_name
from dashboard.regressions.judge.level_ratio import RatioSeries
from dashboard.regressions.judge.level_reading import find_shown
from dashboard.regressions.judge.not_compared import judged_levels, list_layouts
from dashboard.regressions.judge.pooled_estimate import Unit, log_to_change
from dashboard.regressions.judge.reading_state import BoundedSeries
from dashboard.regressions.judge.region_state import Region
from dashboard.regressions.judge.result import HeldBy, NextStep, Reason

SWAP_MINUTES = 60


def next_step(
    comparison: Comparison,
    reason: Reason,
    held_by: HeldBy | None,
    held: BoundedSeries | None,
    look: int | None,
) -> NextStep | None:
    """The next step; None if only time is missing or the verdict is clear. `held` is the series
    that holds back HEALTHY, and `look` the minute of the next look."""
    settings = comparison.settings
    if reason in (
        "no_longer_compared",
        "no_baseline",
        "one_after_the_other",
        "in_turn",
        "no_common_host",
        "no_common_stratum",
    ):
        return run_side_by_side(comparison)
    if reason == "too_few_calls":
        return NextStep(
            "add_traffic", "candidate", "", settings.bin_calls, None, settings.bin_minutes[-1]
        )
    if reason in ("warming_up", "too_short"):
        return NextStep(
            "wait", "candidate", "", 0, None, settings.warm_up_minutes + settings.instance_minutes
        )
    if reason not in ("before_look", "not_within_bound"):
        return None
    if held_by is not None and held_by.helps == "time":
        rest = look - comparison.minute - 1 if look and comparison.minute is not None else None
        return NextStep("wait", "candidate", "", 0, None, rest) if rest is not None else None
    if stratum := find_swappable(comparison):
        return NextStep("swap_hosts", "candidate", stratum_name(stratum), 1, None, SWAP_MINUTES)
    if held_by is not None and held_by.helps == "calls":
        return NextStep(
            "add_traffic", "candidate", "", settings.bin_calls, None, settings.bin_minutes[0]
        )
    if any(how.startswith("pool") for how in list_layouts(comparison)[:1]):
        return run_side_by_side(comparison)
    return choose_more_instances(comparison, held)


def run_side_by_side(comparison: Comparison) -> NextStep:
    """The advice to keep an instance of the baseline for an hour."""
    strata = list_candidate_strata(comparison)
    return NextStep("run_side_by_side", "baseline", strata[0] if strata else "", 1, None, 60)


def list_candidate_strata(comparison: Comparison) -> list[str]:
    """Names of the strata with calls of the candidate."""
    return sorted(
        {
            stratum_name(key[0])
            for region in comparison.regions.values()
            for key, traffic in region.traffic.items()
            if traffic.candidate
        }
    )


def find_swappable(comparison: Comparison) -> Stratum | None:
    """The stratum in which one instance of each version is compared on two hosts, if that is the
    whole comparison. The hosts then differ as much as the versions; a swap separates both."""
    pairs = set()
    for region, series in judged_levels(comparison):
        for group in series.estimate.groups if series.estimate else ():
            if group.day_share or len(group.baseline) != 1 or len(group.candidate) != 1:
                return None
            (baseline,), (candidate,) = group.baseline, group.candidate
            hosts = find_hosts(region, group.stratum)
            pairs.add((group.stratum, hosts.get(baseline, ""), hosts.get(candidate, "")))
    if len(pairs) != 1:
        return None
    stratum, before, after = pairs.pop()
    return stratum if before and after and before != after else None


def find_hosts(region: Region, stratum: Stratum) -> dict[Unit, str]:
    """The host of every instance of a stratum; empty text if not reported."""
    found: dict[Unit, str] = {}
    for series, _ in region.entries:
        if isinstance(series, AffectedSeries):
            for windows in (series.baseline, series.candidate):
                for unit, window in windows.get(stratum, {}).items():
                    found[unit] = found.get(unit) or window.host
    return found


def choose_more_instances(comparison: Comparison, held: BoundedSeries | None) -> NextStep | None:
    """The additional instances after which the smallest change can be detected. The size is stated
    only for the series that holds back HEALTHY."""
    levels = [series for _, series in judged_levels(comparison)]
    of_held = isinstance(held, RatioSeries)
    steps = [
        step
        for series in ([held] if isinstance(held, RatioSeries) else levels)
        for step in estimate_more_instances(series, comparison.budget)
    ]
    best = min(steps, key=lambda step: (step.visible or 0.0, step.arm, step.stratum), default=None)
    return best if best is None or held is None or of_held else replace(best, visible=None)


def estimate_more_instances(
    series: RatioSeries, budget: ErrorBudget, count: int = 2
) -> list[NextStep]:
    """The change that is detected in 90% of cases with `count` more instances in each stratum and
    arm."""
    shown, metric = find_shown(series, budget), series.metric
    if shown is None:
        return []
    estimate, effect = shown.estimate, math.log1p(metric.smallest_effect)
    weight = sum(1.0 / group.k for group in estimate.groups)
    steps = []
    for group in estimate.groups:
        if group.day_share:
            continue
        for arm, grown, other in (
            ("candidate", group.candidate, group.baseline),
            ("baseline", group.baseline, group.candidate),
        ):
            k = 1.0 / (len(grown) + count) + 1.0 / len(other)
            error = math.sqrt(estimate.variance / (weight - 1.0 / group.k + 1.0 / k))
            more = estimate._replace(error=error, df=estimate.df + count)
            size = detectable(more.margin(shown.tail), effect, error, more.df)
            visible = abs(log_to_change(metric.worse * size))
            place = stratum_name(group.stratum)
            steps.append(NextStep("add_instances", arm, place, count, visible, 0))
    return steps
