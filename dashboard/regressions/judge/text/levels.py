"""Level text: describes the change of a level with its interval and both levels."""

from __future__ import annotations

from collections.abc import Sequence

from dashboard.regressions.judge.inputs import Layout
from dashboard.regressions.judge.result import Evidence
from dashboard.regressions.judge.text.cohorts import cohort_phrase, disagreement_phrase
from dashboard.regressions.judge.text.sentences import capitalize, orient_change
from dashboard.vocabulary.metrics import MetricEntry, find_metric
from dashboard.vocabulary.numbers import (
    SPACE,
    bound,
    change_range,
    is_factor,
    level,
    magnitude,
    percent,
)

LAYOUT_PHRASES: dict[Layout, str] = {
    "side_by_side": "",
    "day_before": f" on the same hosts 24{SPACE}h earlier",
    "day_before_by_weekday": f" on the same hosts 24{SPACE}h earlier, adjusted for the weekday,",
    "past_by_load": " on the same hosts earlier, adjusted for load,",
    "pool_day_before": f" on all its hosts together 24{SPACE}h earlier",
    "pool_day_before_by_weekday": f" on all its hosts together 24{SPACE}h earlier, adjusted for "
    "the weekday,",
    "pool_by_load": " on all its hosts together earlier, adjusted for load,",
    "last_day": " on its last day",
    "run_against_run": "",
    "less_neighbours": "",
}
HOST_LAYOUTS: set[Layout] = {"day_before", "day_before_by_weekday", "past_by_load"}
"""Layouts that compare hosts with their own past."""
FEW = {1: "its only", 2: "both"}
"""Words for all of one or two instances."""


def describe_baseline(baseline: str, layouts: tuple[Layout, ...]) -> str:
    """The baseline, with place and time of its measurement if it did not run side by side."""
    return baseline + LAYOUT_PHRASES[layouts[0] if layouts else "side_by_side"]


def is_count(row: Evidence) -> bool:
    """True if a row is described as a share or rate, even if its change is known."""
    return row.change is None or row.unit == "share"


def level_phrase(
    row: Evidence,
    against: str,
    place: str,
    several: bool,
    *,
    with_interval: bool = True,
    limit: float | None = None,
) -> str:
    """A level with its interval, the baseline, both levels, and the affected instances with the
    start. A second level has no baseline and no place if those are the same."""
    if row.metric == "leak":
        said, both = growth_phrase(row, with_interval=with_interval), ""
    else:
        size = size_phrase(row, with_interval=with_interval, limit=limit)
        said, both = f"{subject_phrase(row, several)} is {size}", levels_phrase(row)
    parts = [f"{said}{against.rstrip(',')}", *filter(None, (both,))]
    joint = "," if both or row.metric == "leak" or against.endswith(",") else ""
    return ", ".join(parts) + (f"{joint}{place}" if place else "") + disagreement_phrase(row)


def against_phrase(row: Evidence, baseline: str) -> str:
    """` than v1 on its last day`; a factor is compared with "as"."""
    as_factor = is_factor(orient_change(row.change or 0.0, row.worse)) and row.metric != "leak"
    word = "as" if as_factor else "than on" if row.metric == "leak" else "than"
    return f" {word} {describe_baseline(baseline, row.layouts)}"


def growth_phrase(row: Evidence, *, with_interval: bool = True) -> str:
    """The growth of GPU memory, and its difference from the baseline's."""
    change = row.change or 0.0
    shown = f" ({interval(row, change >= 0)})" if with_interval else ""
    return (
        f"GPU memory grows by {percent(row.candidate or 0.0)} per hour, "
        f"{percent(abs(change))}{shown} {'more' if change >= 0 else 'less'}"
    )


def subject_phrase(row: Evidence, several: bool) -> str:
    """The metric as the subject of a sentence, with its region if there are `several`."""
    of = f" of `{row.region}`" if several and row.region else ""
    return find_metric(row.metric).subject + of + cohort_phrase(row) + window_phrase(row)


def window_phrase(row: Evidence) -> str:
    """` in the last hour`: the trailing window that shows the change; else empty."""
    if not row.window_minutes or is_count(row):
        return ""
    hours, minutes = divmod(row.window_minutes, 60)
    if not hours:
        return f" in the last {minutes}{SPACE}minutes"
    return " in the last hour" if hours == 1 else f" in the last {hours}{SPACE}hours"


def size_phrase(row: Evidence, *, with_interval: bool = True, limit: float | None = None) -> str:
    """`22% slower (11% to 34%, limit 5%)`: the size of a change, with the change that is
    tolerated."""
    change = row.change or 0.0
    ratio = orient_change(change, row.worse)
    least = "at least " if row.baseline_at_most or row.candidate_at_most else ""
    notes = [interval(row, change >= 0)] if with_interval and row.low is not None else []
    notes += [limit_phrase(limit, row.worse)] if with_interval and limit else []
    shown = f" ({', '.join(notes)})" if notes else ""
    way = direction(find_metric(row.metric), change, ratio)
    return f"{least}{magnitude(ratio)} {way}{shown}"


def limit_phrase(limit: float, worse: int) -> str:
    """`limit 5%`: the change from which a verdict is worse, in the direction of the metric."""
    return f"limit {magnitude(orient_change(limit, worse))}"


def direction(metric: MetricEntry, change: float, ratio: float) -> str:
    """The adjective of a change: slower, higher; for a factor, as long."""
    if is_factor(ratio):
        return f"as {metric.factor_word}"
    return metric.worse if change >= 0 else metric.better


def levels_phrase(row: Evidence) -> str:
    """`9.8 ms instead of 8 ms`: both levels; empty if they are unknown or look the same."""
    if row.baseline is None or row.candidate is None:
        return ""
    before = _level(row.baseline, row.unit, at_most=row.baseline_at_most)
    after = _level(row.candidate, row.unit, at_most=row.candidate_at_most)
    return f"{after} instead of {before}" if after != before else ""


def _level(value: float, unit: str, *, at_most: bool) -> str:
    return bound(value) if at_most and unit == "s" else level(value, unit)


def excludes_zero(row: Evidence) -> bool:
    """True if the interval of a row excludes no change; also true for a row without an interval."""
    return row.low is None or row.high is None or row.low > 0.0 or row.high < 0.0


def interval(row: Evidence, worse: bool) -> str:
    """The interval in the direction of the sentence. Both directions are words if it contains zero:
    `4.1% faster to 20% slower`."""
    low, high = orient_change(row.low or 0.0, row.worse), orient_change(row.high or 0.0, row.worse)
    if low < 0.0 < high and row.metric != "leak":
        metric = find_metric(row.metric)
        sides = (f"{magnitude(low)} {metric.better}", f"{magnitude(high)} {metric.worse}")
        return " to ".join(sides if worse else sides[::-1])
    low, high = (low, high) if worse else (-high, -low)
    return change_range(low, high, orient_change(row.change or 0.0, row.worse))


def instances_phrase(row: Evidence) -> str:
    """The affected instances of the candidate: on 2 of 6 instances; on average over 6 instances."""
    count, total = row.affected_instances, row.candidate_instances
    unit = "host" if set(row.layouts[:1]) & HOST_LAYOUTS else "instance"
    unit = "run" if row.layouts[:1] == ("run_against_run",) else unit
    if total == 1 and row.odd_host and row.odd_host != row.odd_instance:
        return f"on its only {unit} ({row.odd_host})"
    if count == total:
        return f"on {FEW.get(total, f'all {total}')} {unit}{'s' if total > 1 else ''}"
    if count:
        return f"on {count} of {total} {unit}s"
    every = f"{total} {unit}s" if total != 1 else f"its only {unit}"
    return f"{'over' if is_count(row) else 'on average over'} {every}"


def find_improvement(rows: Sequence[Evidence]) -> Evidence | None:
    """The hard level that improved, if no evaluated metric is worse. Call time comes first: other
    levels follow it."""
    judged = [row for row in rows if row.judged]
    if any(row.label == "REGRESSED" or row.drives for row in judged):
        return None
    better = [row for row in judged if row.hard and row.label == "IMPROVED" and not is_count(row)]
    return min(
        better,
        key=lambda row: (not row.metric.endswith("p50"), row.change or 0.0),
        default=None,
    )


def improvement_sentence(rows: Sequence[Evidence], baseline: str) -> str:
    """The size of an improvement, as a sentence; empty without one."""
    row = find_improvement(rows)
    if row is None:
        return ""
    several = len({each.region for each in rows if each.region}) > 1
    return capitalize(f"{level_phrase(row, against_phrase(row, baseline), '', several)}.")
