"""Evidence reader: the only parser of the JSON that a verdict stores.

A row keeps the format of the release that wrote it, so any key may be missing or hold any value.
Unreadable values are skipped; keys of earlier releases are mapped to current ones.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from dashboard.fleet.metrics.eager_causes import parse_causes
from dashboard.regressions.stored_evidence import (
    STARTS,
    ArmExclusion,
    Change,
    Coverage,
    EnvironmentChange,
    ExcludedCalls,
    StoredDot,
    StoredDrift,
    StoredFact,
    StoredHeldBy,
    StoredMixShift,
    StoredRun,
    StoredStep,
    StoredWarmUp,
)
from dashboard.vocabulary.metrics import canonical_key, find_metric
from dashboard.vocabulary.severity import NO_ANSWER

Raw = Mapping[str, Any]
ARMS = ("baseline", "candidate")


def read_changes(evidence: Any) -> list[Change]:
    """Every row of stored evidence, in the order of the judge."""
    return [read_change(row) for row in _rows(evidence, "evidence") or _rows(evidence, "metrics")]


def read_change(row: Raw) -> Change:
    """One row. The judge orients every change so that more is worse; here the change is of the
    metric itself."""
    change, low, high = (_number(row, key) for key in ("change", "low", "high"))
    if row.get("worse") == -1:
        change, low, high = _inverse(change), _inverse(high), _inverse(low)
    metric, window = canonical_key(_text(row, "metric")), _count(row, "window_minutes")
    matched, strata = _count(row, "matched_minutes"), row.get("strata")
    return Change(
        metric=metric,
        region=_text(row, "region"),
        unit=_text(row, "unit"),
        label=(_text(row, "label") or NO_ANSWER).replace("_", " "),
        reason=_text(row, "reason"),
        judged=bool(row.get("judged", True)),
        drives=row.get("drives") is True,
        hard=bool(row.get("hard", True)),
        muted=bool(row.get("muted")),
        baseline=_number(row, "baseline"),
        candidate=_number(row, "candidate"),
        baseline_at_most=row.get("baseline_at_most") is True,
        candidate_at_most=row.get("candidate_at_most") is True,
        change=change,
        low=low,
        high=high,
        minutes=None if metric in STARTS else window or matched,
        newest=bool(window),
        baseline_instances=_count(row, "baseline_instances", "instances_baseline"),
        candidate_instances=_count(row, "candidate_instances", "instances_candidate"),
        affected_instances=_count(row, "affected_instances"),
        affected_share=_number(row, "affected_share"),
        excluded=_pair(row, "excluded_baseline", "excluded_candidate"),
        baseline_counts=_pair(row, "baseline_events", "baseline_calls"),
        candidate_counts=_pair(row, "candidate_events", "candidate_calls"),
        causes=parse_causes(row.get("causes")),
        less_is_worse=row.get("worse") == -1,
        matched_minutes=matched,
        since=_count(row, "since"),
        onset=_read_onset(row),
        from_start=row.get("from_start") is True,
        smallest_effect=_number(row, "smallest_effect"),
        times=_number(row, "times"),
        points=_number(row, "points"),
        strata=len(strata) if isinstance(strata, list | tuple) else 0,
        strata_agreeing=_count(row, "strata_agreeing"),
        explained_by=canonical_key(_text(row, "explained_by")),
    )


def read_held_by(evidence: Any) -> StoredHeldBy | None:
    """The metric that holds back HEALTHY, as changes of the metric itself; None if the verdict does
    not state it."""
    row = _row(evidence, "held_by")
    metric = canonical_key(_text(row, "metric"))
    if not metric:
        return None
    change, low, high, visible = (
        _number(row, key) for key in ("change", "low", "high", "visible_90")
    )
    if find_metric(metric).direction == "down":
        change, low, high, visible = map(_inverse, (change, high, low, visible))
    return StoredHeldBy(
        metric, _text(row, "region"), change, low, high, visible, _text(row, "helps")
    )


def read_next_step(evidence: Any) -> StoredStep | None:
    """The next step that the verdict advises; None if it advises none."""
    row = _row(evidence, "next_step")
    if not _text(row, "kind"):
        return None
    return StoredStep(
        _text(row, "kind"),
        _text(row, "arm"),
        _text(row, "stratum"),
        _count(row, "count") or 0,
        _number(row, "visible"),
        _count(row, "minutes") or 0,
    )


def read_onset(evidence: Any) -> tuple[int, int] | None:
    """The minutes between which the earliest change behind a verdict began; None if unknown."""
    driving = [row for row in read_changes(evidence) if row.drives and row.since is not None]
    first = min(driving, key=lambda row: (row.since or 0, row.onset is None), default=None)
    return first.onset if first else None


def read_dots(evidence: Any, metric: str) -> tuple[list[StoredDot], int]:
    """The instances of a metric's first row that has any, and the number of omitted instances."""
    for row in _rows(evidence, "evidence"):
        dots = [dot for one in _rows(row, "dots") if (dot := _read_dot(one))]
        if dots and canonical_key(_text(row, "metric")) == metric:
            return dots, _count(row, "dots_left_out") or 0
    return [], 0


def read_facts(evidence: Any) -> list[StoredFact]:
    """The confirmed facts, new ones first, as the judge orders them."""
    return [
        StoredFact(
            kind=_text(row, "kind"),
            severity=_text(row, "severity"),
            about=_text(row, "about"),
            why=_text(row, "why"),
            count=_count(row, "count") or 1,
            since=_count(row, "since"),
            instances=tuple(map(str, found))
            if isinstance(found := row.get("instances"), list | tuple)
            else None,
            on_baseline=_count(row, "on_baseline") or 0,
            passed_on_baseline=_count(row, "passed_on_baseline") or 0,
            baseline_silent=row.get("baseline_silent") is True,
        )
        for row in _rows(evidence, "facts")
        if _text(row, "kind")
    ]


def read_drifts(evidence: Any) -> list[StoredDrift]:
    """The drifts of a version from its own first day."""
    return [
        StoredDrift(
            canonical_key(_text(row, "metric")),
            _text(row, "region"),
            _number(row, "change") or 0.0,
            _count(row, "since"),
            _count(row, "instances"),
        )
        for row in _rows(evidence, "drift")
    ]


def read_excluded_calls(evidence: Any) -> list[ExcludedCalls]:
    """Calls that were not compared, the largest share first."""
    return [
        ExcludedCalls(
            _text(row, "what") or "some calls",
            _text(row, "why"),
            _number(row, "share"),
        )
        for row in _rows(evidence, "not_compared")
    ]


def read_mix_shifts(evidence: Any) -> list[StoredMixShift]:
    """The effect of a different mix of shapes on each level, if known."""
    return [
        StoredMixShift(
            _text(row, "region") or "the region", _text(row, "metric") or "the level", change
        )
        for row in _rows(evidence, "mix_shift")
        if (change := _number(row, "change")) is not None
    ]


def read_environment(evidence: Any) -> list[EnvironmentChange]:
    """Differences between the environments of both versions."""
    return [
        EnvironmentChange(
            str(row["key"]), _read_values(row.get("baseline")), _read_values(row.get("candidate"))
        )
        for row in _rows(evidence, "environment")
        if row.get("key")
    ]


def read_coverage(evidence: Any) -> Coverage:
    """How the versions were compared. Rows without this data are from a release that knew only one
    layout: side by side."""
    row: Raw = evidence if isinstance(evidence, Mapping) else {}
    layouts = row.get("layouts")
    return Coverage(
        reason=_text(row, "reason"),
        bound=_number(row, "bound"),
        layouts=tuple(map(str, layouts))
        if isinstance(layouts, list | tuple) and layouts
        else ("side_by_side",),
        compared_minutes=_count(row, "compared_minutes") or 0,
        comparable_share=_number(row, "comparable_share"),
        adoption=_number(row, "adoption"),
        low_adoption=bool(row.get("low_adoption")),
        runs_ended=isinstance(runs := row.get("runs"), Mapping) and runs.get("ended") is True,
    )


def read_warm_up(evidence: Any) -> StoredWarmUp | None:
    """The warm-up of a verdict; None for a verdict of an earlier release."""
    row = _part(evidence, "warm_up")
    minutes = _count(row, "minutes")
    if minutes is None:
        return None
    baseline, candidate = (_read_exclusion(_part(row, arm)) for arm in ARMS)
    source, processes = _text(row, "source"), _count(row, "processes") or 0
    return StoredWarmUp(minutes, source, processes, baseline, candidate)


def read_runs(evidence: Any) -> list[StoredRun]:
    """The compared runs; empty if the verdict compares no short jobs."""
    runs = evidence.get("runs") if isinstance(evidence, Mapping) else None
    return [
        StoredRun(
            _text(row, "unit"),
            _text(row, "arm"),
            _count(row, "excluded_minutes") or 0,
            _count(row, "minutes") or 0,
        )
        for row in _rows(runs, "runs")
    ]


def list_wrong_results(evidence: Any) -> frozenset[str]:
    """Wrong results in a stored verdict that the baseline computed correctly. A person's answer
    about slower calls does not cover them."""
    return frozenset(
        f"{fact.kind} {fact.about}"
        for fact in read_facts(evidence)
        if fact.severity == "roll_back" and fact.kind != "stalled_calls"
    )


def find_rank_divergence(evidence: Any) -> StoredFact | None:
    """The fact that ranks of a job diverged while the baseline's ranks did not."""
    return next(
        (
            fact
            for fact in read_facts(evidence)
            if fact.kind == "ranks_diverged" and fact.severity != "known"
        ),
        None,
    )


def list_urgent_facts(evidence: Any) -> frozenset[str]:
    """New facts that notify regardless of earlier verdicts and answers: wrong results, and diverged
    ranks."""
    diverged = {"ranks_diverged"} if find_rank_divergence(evidence) else set()
    return list_wrong_results(evidence) | diverged


def _row(holder: Any, key: str) -> Raw:
    found = holder.get(key) if isinstance(holder, Mapping) else None
    return found if isinstance(found, Mapping) else {}


def _rows(holder: Any, key: str) -> list[Raw]:
    found = holder.get(key) if isinstance(holder, Mapping) else None
    rows = found if isinstance(found, list | tuple) else ()
    return [row for row in rows if isinstance(row, Mapping)]


def _part(holder: Any, key: str) -> Raw:
    found = holder.get(key) if isinstance(holder, Mapping) else None
    return found if isinstance(found, Mapping) else {}


def _read_exclusion(row: Raw) -> ArmExclusion:
    minutes, calls, all_minutes = (
        _count(row, key) or 0 for key in ("excluded_minutes", "excluded_calls", "minutes")
    )
    return ArmExclusion(minutes, calls, all_minutes)


def _number(row: Raw, *keys: str) -> float | None:
    """The finite number under the first of these keys that has one."""
    for key in keys:
        value = row.get(key)
        if isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value):
            return float(value)
    return None


def _count(row: Raw, *keys: str) -> int | None:
    """The same as an integer."""
    value = _number(row, *keys)
    return None if value is None else int(value)


def _text(row: Raw, key: str) -> str:
    """The text under a key; empty for any other type."""
    value = row.get(key)
    return value if isinstance(value, str) else ""


def _pair(row: Raw, *keys: str) -> tuple[int, int] | None:
    first, second = (_count(row, key) for key in keys)
    return None if first is None or second is None else (first, second)


def _read_onset(row: Raw) -> tuple[int, int] | None:
    """The first and the last minute of an onset, in this order."""
    found = row.get("onset")
    if not isinstance(found, list | tuple) or len(found) != 2:
        return None
    earliest, latest = (_count({"minute": each}, "minute") for each in found)
    if earliest is None or latest is None or earliest > latest:
        return None
    return earliest, latest


def _inverse(ratio: float | None) -> float | None:
    return None if ratio is None or ratio <= -1 else 1 / (1 + ratio) - 1


def _read_dot(row: Raw) -> StoredDot | None:
    value, arm = _number(row, "value"), _text(row, "arm")
    if value is None or arm not in ARMS:
        return None
    return StoredDot(
        _text(row, "instance"),
        arm,
        _text(row, "stratum"),
        _text(row, "bucket"),
        value,
        _count(row, "n") or 0,
    )


def _read_values(values: Any) -> tuple[tuple[str, int], ...]:
    pairs = values if isinstance(values, list | tuple) else ()
    return tuple(
        (str(pair[0]), int(pair[1]))
        for pair in pairs
        if isinstance(pair, list | tuple) and len(pair) == 2 and isinstance(pair[1], int)
    )
