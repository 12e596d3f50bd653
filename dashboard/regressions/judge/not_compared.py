"""Coverage: calls that were not compared with the reason, and the effect of a shifted mix alone."""

from __future__ import annotations

import math

from dashboard.regressions.judge.comparison import Comparison
from dashboard.regressions.judge.evidence import baseline_levels, find_judged_level
from dashboard.regressions.judge.inputs import CellKey, Layout, Stratum, Traffic, stratum_name
from dashboard.regressions.judge.level_ratio import RatioSeries
from dashboard.regressions.judge.pooled_estimate import log_to_change
from dashboard.regressions.judge.region_state import Region
from dashboard.regressions.judge.result import (
    BucketShare,
    MixShift,
    NotCompared,
    NotComparedReason,
    Reason,
)


def judged_levels(comparison: Comparison) -> list[tuple[Region, RatioSeries]]:
    """The levels that count for the verdict, over all regions."""
    found = []
    for region in comparison.regions.values():
        for series, _ in region.entries:
            level = find_judged_level(region, series)
            if level is not None:
                found.append((region, level))
    return found


def not_compared(comparison: Comparison) -> tuple[NotCompared, ...]:
    """The candidate's calls without a counterpart, largest share first."""
    total = comparison.calls().total if comparison.regions else 0
    if not total:
        return ()
    found: list[NotCompared] = []
    after = comparison.calls().after
    if after:
        found.append(NotCompared("all cohorts", "after_the_baseline_ended", after / total))
    for region in comparison.regions.values():
        for (stratum, host, reason), calls in region.away.items():
            if reason:
                place = host or ("unknown host" if reason == "no_baseline_on_host" else "")
                what = " · ".join(
                    part for part in (region.name, stratum_name(stratum), place) if part
                )
                found.append(NotCompared(what, reason, calls / total))
    levels = {region.name: series for region, series in judged_levels(comparison)}
    for region in comparison.regions.values():
        known = region.strata_with_baseline()
        series = levels.get(region.name)
        for key, traffic in region.traffic.items():
            what = " · ".join(part for part in (region.name, stratum_name(key[0]), key[1]) if part)
            if traffic.alone:
                why: NotComparedReason = (
                    "no_baseline_in_bucket" if key[0] in known else "no_baseline_in_stratum"
                )
                found.append(NotCompared(what, why, traffic.alone / total))
            elif is_unmatched(series, key, traffic):
                one_sided = (
                    series is not None and key in series.cells and series.cells[key].one_sided
                )
                found.append(
                    NotCompared(
                        what,
                        "one_sided" if one_sided else "too_few_calls",
                        traffic.candidate / total,
                    )
                )
    return tuple(sorted(found, key=lambda item: (-(item.share or 0.0), item.what)))


def agents_differ(comparison: Comparison) -> tuple[NotCompared, ...]:
    """Values that only the newer of two agent versions counts, or that it counts differently."""
    if not comparison.agents_differ:
        return ()
    stalled = [
        NotCompared(f"stalled calls of {name}", "agents_differ", None)
        for name in sorted(comparison.agents_differ)
    ]
    bare = [
        NotCompared(f"calls of {name} without a graph", "agents_differ", None)
        for name in sorted(comparison.differ_on_graphs)
    ]
    return (*stalled, *bare, NotCompared("recompiles", "agents_differ", None))


def is_unmatched(series: RatioSeries | None, key: CellKey, traffic: Traffic) -> bool:
    """True if both arms had calls, but no bin had enough."""
    if not traffic.candidate or not traffic.baseline or series is None or traffic.away:
        return False
    cell = series.cells.get(key)
    return cell is None or not (cell.candidate or series.past_of(cell))


def mix_shift(comparison: Comparison) -> tuple[MixShift, ...]:
    """For each judged level, the change that the candidate's mix of shapes would cause at the
    baseline's speed."""
    found = []
    for region, series in judged_levels(comparison):
        shift = region_shift(region, series)
        if shift is not None:
            found.append(shift)
    return tuple(sorted(found, key=lambda shift: (shift.region, shift.metric)))


def region_shift(region: Region, series: RatioSeries) -> MixShift | None:
    """The mix shift of one region. Strata are weighted by the candidate's calls; buckets that the
    baseline never called are excluded."""
    by_stratum: dict[Stratum, list[tuple[str, Traffic, float]]] = {}
    for (stratum, bucket), cell in series.cells.items():
        levels = baseline_levels(series, cell, False) + baseline_levels(series, cell, True)
        if levels:
            by_stratum.setdefault(stratum, []).append(
                (bucket, cell.traffic, math.fsum(levels) / len(levels))
            )
    shares: list[BucketShare] = []
    terms: list[float] = []
    weight = 0
    for stratum, cells in by_stratum.items():
        base = sum(traffic.baseline for _, traffic, _ in cells)
        cand = sum(traffic.candidate for _, traffic, _ in cells)
        weight += cand
        for bucket, traffic, level in cells:
            share = BucketShare(
                stratum_name(stratum), bucket, traffic.baseline / base, traffic.candidate / cand
            )
            shares.append(share)
            terms.append(cand * (share.candidate - share.baseline) * series.metric.worse * level)
    if not weight:
        return None
    change = log_to_change(math.fsum(terms) / weight)
    return MixShift(
        region.name,
        series.metric.name,
        change,
        tuple(sorted(shares, key=lambda s: (s.stratum, s.bucket))),
    )


def find_reason(comparison: Comparison, now_minute: int) -> Reason:
    """The first missing piece of data, in the order in which data becomes a verdict."""
    candidate, baseline = comparison.lives["candidate"], comparison.lives["baseline"]
    if comparison.runs is not None:
        # A short job that has ended is complete, not silent. Its reason follows from its runs.
        return ""
    if candidate.first is None or candidate.last is None:
        return "no_candidate"
    if now_minute - candidate.last > comparison.settings.silent_minutes:
        return "silent"
    restarting = comparison.young.dominates(now_minute, candidate.first)
    if candidate.first_steady is None:
        return "mostly_warm_up" if restarting else "warming_up"
    if baseline.last is None:
        return "no_baseline"
    if not comparison.side_by_side_minutes and not comparison.same_host_minutes:
        return explain_separation(comparison, baseline.last, candidate.first_steady, now_minute)
    if comparison.policy.stale:
        return "no_longer_compared"
    if not comparison.comparable():
        return "no_common_stratum"
    if restarting:
        return "mostly_warm_up"
    levels = [series for _, series in judged_levels(comparison)]
    if not levels:
        return "muted"
    if not any(series.matched_minutes for series in levels):
        if comparison.turns.taken:
            return "in_turn"
        return "one_sided" if any(series.one_sided for series in levels) else "too_few_calls"
    if all(series.estimate is None for series in levels):
        return "too_short"
    if any(series.is_within_bucket for series in levels):
        return "bucket_too_wide"
    return "not_within_bound" if comparison.policy.looks_taken else "before_look"


def explain_separation(
    comparison: Comparison, baseline_last: int, candidate_first: int, now_minute: int
) -> Reason:
    """The reason why nothing was compared although both versions ran."""
    if baseline_last >= candidate_first:
        return "in_turn" if comparison.turns.taken else "warming_up"
    if any(
        why in ("no_baseline_on_host", "past_too_short")
        for region in comparison.regions.values()
        for _, _, why in region.away
    ):
        return "no_common_host"
    if comparison.with_past and now_minute - baseline_last <= comparison.settings.gone_minutes:
        return "too_short"
    return "one_after_the_other"


def list_layouts(comparison: Comparison) -> tuple[Layout, ...]:
    """The layouts in which the judged levels were compared, most informative first."""
    return tuple(
        dict.fromkeys(how for _, series in judged_levels(comparison) for how in series.layouts)
    )
