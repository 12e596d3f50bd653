"""Count evidence: reads a row of evidence from the running state of a count."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

from dashboard.regressions.judge.affected_instances import AffectedSeries
from dashboard.regressions.judge.error_budget import ErrorBudget
from dashboard.regressions.judge.inputs import stratum_name
from dashboard.regressions.judge.instance_windows import InstanceWindows
from dashboard.regressions.judge.onset import History
from dashboard.regressions.judge.pooled_estimate import log_to_change
from dashboard.regressions.judge.rate_ratio import Rate
from dashboard.regressions.judge.region_state import Region, Series
from dashboard.regressions.judge.result import Dot, Evidence, Label, Reason, Rule, sort_dots
from dashboard.regressions.judge.settings import AffectedMetric, Settings
from dashboard.regressions.judge.verdict_policy import Track, Verdict, is_driving
from dashboard.vocabulary.metrics import find_metric

NO_INTERVAL: dict[str, Any] = dict.fromkeys(("change", "low", "high", "bound", "smallest_visible"))
COUNTS = ("baseline_events", "baseline_calls", "candidate_events", "candidate_calls")


def build_heading(
    region: Region, series: Series, track: Track, judged: bool, verdict: Verdict
) -> dict[str, Any]:
    """The fields that the rows of levels and of counts share."""
    metric, drives = series.metric, judged and is_driving(track, verdict)
    return {
        "metric": metric.name,
        "region": region.name,
        "unit": metric.unit,
        "judged": judged,
        "hard": metric.hard,
        "drives": drives,
        **date_onset(series.history, track, drives),
    }


def date_onset(history: History, track: Track, drives: bool) -> dict[str, Any]:
    """The start of the change. Only rows that drive have an onset, because it takes a computation;
    the others have the end of the first window with the change."""
    if not drives or track.since is None:
        return {"since": track.since}
    onset = history.find_onset(track.since)
    if onset:
        return {"since": onset.best, "onset": (onset.earliest, onset.latest)}
    if history.truncated or not history.minutes:
        return {"since": track.since}
    return {"since": history.first, "from_start": True}


def count_row(
    region: Region,
    series: AffectedSeries,
    track: Track,
    settings: Settings,
    budget: ErrorBudget,
    judged: bool,
    verdict: Verdict,
) -> Evidence:
    """The row of a count: shares of calls over the last minutes, and the number of affected
    instances."""
    metric, rate = series.metric, series.rate
    margin = rate.margin(series.rates.tail(budget, "roll_back")) if rate else 0.0
    label, reason = count_label(series, track, rate, margin)
    row = Evidence(
        **build_heading(region, series, track, judged, verdict),
        label=label,
        reason=reason,
        baseline=series.share(series.baseline),
        candidate=series.share(series.candidate),
        **NO_INTERVAL,
        smallest_effect=metric.threshold,
        tolerated=metric.tolerated,
        worse=1,
        baseline_instances=len(series.baseline_judged)
        or count_sharing_instances(series, series.baseline),
        candidate_instances=len(series.judged) or count_sharing_instances(series, series.candidate),
        affected_instances=len(series.affected),
        matched_minutes=series.matched_minutes,
        strata_agreeing=len({stratum for stratum, _ in series.affected}),
        strata=(),
        layouts=(),
        causes=series.causes(),
        rule=count_rule(series, label),
        dots=affected_dots(series.baseline, "baseline")
        + affected_dots(series.candidate, "candidate"),
        window_minutes=metric.window_minutes,
        **window_counts(series),
    )
    if not rate or row.rule == "affected":
        return row
    return add_rate(replace(row, **rate_counts(series, rate)), metric, rate, margin, settings)


def window_counts(series: AffectedSeries) -> dict[str, Any]:
    """Events and calls of both arms over the last minutes; None if a share is not of calls."""
    counts: dict[str, Any] = dict.fromkeys(COUNTS)
    if is_share_of_calls(series.metric):
        for arm, strata in (("baseline", series.baseline), ("candidate", series.candidate)):
            windows = [window for units in strata.values() for window in units.values()]
            counts[f"{arm}_events"] = sum(window.events for window in windows)
            counts[f"{arm}_calls"] = sum(window.calls for window in windows)
    return counts


def rate_counts(series: AffectedSeries, rate: Rate) -> dict[str, Any]:
    """Events and calls of both arms in the minutes of a rate; None if a share is not of calls."""
    if not is_share_of_calls(series.metric):
        return dict.fromkeys(COUNTS)
    base_calls = sum(sums.base_calls for sums in series.rates.strata.values())
    return dict(zip(COUNTS, (rate.base_events, base_calls, rate.events, rate.calls), strict=True))


def is_share_of_calls(metric: AffectedMetric) -> bool:
    """True if the metric counts calls, and not a part of their time."""
    return find_metric(metric.name).share_of == "calls"


def count_sharing_instances(series: AffectedSeries, windows: InstanceWindows) -> int:
    """Number of instances that contribute to a rate without enough calls to be judged alone."""
    return (
        sum(len(windows.get(stratum, ())) for stratum in series.rates.strata)
        if series.metric.by_rate
        else 0
    )


def add_rate(
    row: Evidence, metric: AffectedMetric, rate: Rate, margin: float, settings: Settings
) -> Evidence:
    """The row with its shares since the deployment, and with their interval if the baseline had an
    event to be a multiple of."""
    row = replace(
        row,
        baseline=rate.baseline,
        candidate=rate.share,
        times=metric.times,
        points=metric.points,
        window_minutes=0,
    )
    if not rate.base_events:
        return row
    return replace(
        row,
        change=log_to_change(rate.delta),
        low=log_to_change(rate.delta - margin),
        high=log_to_change(rate.delta + margin),
        bound=log_to_change(rate.delta + rate.margin(settings.healthy_alpha)),
        smallest_effect=metric.times - 1.0,
        smallest_visible=log_to_change(margin),
    )


def count_label(
    series: AffectedSeries, track: Track, rate: Rate | None, margin: float
) -> tuple[Label, Reason]:
    """The label of the instance rule if it applies, else that of the rate."""
    if track.reading.regressed:
        return "REGRESSED", ""
    if not series.judged:
        return "NOT ENOUGH DATA", "too_few_calls"
    if series.undecided():
        return "NOT ENOUGH DATA", "baseline_affected"
    if series.baseline_affected and not series.affected:
        return "IMPROVED", ""
    if rate is None or not series.metric.by_rate:
        return "NO CHANGE", ""
    return rate_label(series.metric, rate, margin)


def rate_label(metric: AffectedMetric, rate: Rate, margin: float) -> tuple[Label, Reason]:
    """The label of a rate that is not regressed, from its interval."""
    fallen = -rate.points(rate.delta) >= metric.points and rate.delta <= -math.log(metric.times)
    if fallen and rate.base_events >= metric.least_events and rate.delta + margin < 0.0:
        return "IMPROVED", ""
    if rate.events and rate.matters(rate.delta + margin, metric):
        return "NOT ENOUGH DATA", "too_wide"
    return "NO CHANGE", ""


def count_rule(series: AffectedSeries, label: Label) -> Rule:
    """The rule that made a count REGRESSED. Affected instances come first, because they can be
    named."""
    if label != "REGRESSED":
        return ""
    return "affected" if series.shows() else "rate"


def affected_dots(windows: InstanceWindows, arm: str) -> tuple[Dot, ...]:
    """The share of every instance since the deployment."""
    return sort_dots(
        [
            Dot(
                str(unit),
                arm,
                stratum_name(stratum),
                "",
                window.all_events / window.all_calls,
                window.all_calls,
            )
            for stratum, units in windows.items()
            for unit, window in units.items()
        ]
    )
